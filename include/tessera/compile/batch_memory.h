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

// Memory of a device into which the device itself writes.
class DeviceBlock {
 public:
  virtual ~DeviceBlock() = default;
  void* memory() const { return memory_; }
  // The device writes there until the event, at the latest that was said: whoever lets go of the block waits
  // for it. Null: nothing is left to be written.
  void written_after(std::shared_ptr<Event> event) { written_ = std::move(event); }
  const std::shared_ptr<Event>& written() const { return written_; }

 protected:
  explicit DeviceBlock(void* memory) : memory_(memory) {}

 private:
  void* memory_;
  std::shared_ptr<Event> written_;
};

// Tensors in pinned memory of the host (Device::allocate_pinned()), so that a device takes what is written
// there without another copy, and blocks in the device's own for what it makes itself. What one leaves serves
// the next of as many bytes. Any thread may ask, and tensors and blocks may outlive this.
class BatchMemory {
 public:
  explicit BatchMemory(std::shared_ptr<Device> device) : pool_(std::make_shared<Pool>(std::move(device))) {}

  // For which the batches are.
  const std::shared_ptr<Device>& device() const { return pool_->device; }

  // With undefined contents. Throws Error(out_of_memory).
  Tensor tensor(DataType type, const Shape& shape) const;

  // On the device, with undefined contents; no work uses it any more. Throws Error(out_of_memory).
  std::shared_ptr<DeviceBlock> block(int64_t bytes) const;

 private:
  using Blocks = std::map<int64_t, std::vector<std::shared_ptr<void>>>;  // by bytes
  struct Pool {
    explicit Pool(std::shared_ptr<Device> device) : device(std::move(device)) {}
    std::shared_ptr<void> take(Blocks& blocks, int64_t bytes);
    void give_back(Blocks& blocks, int64_t bytes, std::shared_ptr<void> block);
    const std::shared_ptr<Device> device;
    std::mutex mutex;  // guards what follows
    Blocks pinned;
    Blocks on_device;
  };
  class PooledBlock;
  std::shared_ptr<Pool> pool_;
};

}  // namespace tessera
