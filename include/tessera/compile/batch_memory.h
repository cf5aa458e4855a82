// Memory for batches on their way to a device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/device.h"

namespace tessera {

// Tensors in pinned memory of the host (Device::allocate_pinned()), so that a device takes what is written
// there without another copy. What a tensor leaves serves the next of as many bytes. Any thread may ask, and
// tensors may outlive this.
class BatchMemory {
 public:
  explicit BatchMemory(std::shared_ptr<Device> device) : pool_(std::make_shared<Pool>(std::move(device))) {}

  // For which the batches are.
  Device& device() const { return *pool_->device; }

  // With undefined contents. Throws Error(out_of_memory).
  Tensor tensor(DataType type, const Shape& shape) const;

 private:
  struct Pool {
    explicit Pool(std::shared_ptr<Device> device) : device(std::move(device)) {}
    const std::shared_ptr<Device> device;
    std::mutex mutex;                                            // guards what follows
    std::map<int64_t, std::vector<std::shared_ptr<void>>> free;  // by bytes
  };
  std::shared_ptr<Pool> pool_;
};

}  // namespace tessera
