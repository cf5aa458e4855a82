// What executables that never run at the same time share.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/compile/device.h"

namespace tessera {

// Memory for the values between nodes, as much as the largest of its executables plans, and the queue on
// which all of them run, one after the other. One thread at a time uses it, with all its executables.
class Workspace {
 public:
  explicit Workspace(std::shared_ptr<Device> device) : device_(std::move(device)), queue_(device_->queue()) {}

  // At least so many bytes from now on; what lay there is lost, and memory() may be another. Throws
  // Error(out_of_memory); there is no memory then.
  void reserve(int64_t bytes);
  void* memory() const { return memory_.get(); }  // null before the first reserve()
  int64_t bytes() const { return bytes_; }
  const std::shared_ptr<Queue>& queue() const { return queue_; }
  const std::shared_ptr<Device>& device() const { return device_; }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<void> memory_;
  int64_t bytes_ = 0;
};

}  // namespace tessera
