#include "tessera/compile/batch_memory.h"

#include <utility>

#include "tessera/base/log.h"

namespace tessera {

// One that is idle, or null.
std::shared_ptr<void> BatchMemory::Pool::take(Blocks& blocks, int64_t bytes) {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<void>>& idle = blocks[bytes];
  if (idle.empty()) return nullptr;
  std::shared_ptr<void> block = std::move(idle.back());
  idle.pop_back();
  return block;
}

void BatchMemory::Pool::give_back(Blocks& blocks, int64_t bytes, std::shared_ptr<void> block) {
  const std::lock_guard lock(mutex);
  blocks[bytes].push_back(std::move(block));
}

class BatchMemory::PooledBlock : public DeviceBlock {
 public:
  PooledBlock(std::shared_ptr<Pool> pool, int64_t bytes, std::shared_ptr<void> memory)
      : DeviceBlock(memory.get()), pool_(std::move(pool)), bytes_(bytes), memory_(std::move(memory)) {}
  ~PooledBlock() override {
    try {
      if (written() != nullptr) written()->wait();
      pool_->give_back(pool_->on_device, bytes_, std::move(memory_));
    } catch (const std::exception& error) {  // of a device that is lost nothing is used again
      log_warning("waiting for the device failed: {}", error.what());
    }
  }
  PooledBlock(const PooledBlock&) = delete;
  PooledBlock& operator=(const PooledBlock&) = delete;

 private:
  std::shared_ptr<Pool> pool_;
  int64_t bytes_;
  std::shared_ptr<void> memory_;
};

Tensor BatchMemory::tensor(DataType type, const Shape& shape) const {
  const int64_t bytes = tensor_bytes(type, shape);
  std::shared_ptr<void> block = pool_->take(pool_->pinned, bytes);
  if (block == nullptr) block = pool_->device->allocate_pinned(bytes);
  void* memory = block.get();
  const auto give_back = [pool = pool_, bytes, block = std::move(block)](void*) {
    pool->give_back(pool->pinned, bytes, block);
  };
  return Tensor::share(type, shape, {memory, give_back});
}

std::shared_ptr<DeviceBlock> BatchMemory::block(int64_t bytes) const {
  std::shared_ptr<void> memory = pool_->take(pool_->on_device, bytes);
  if (memory == nullptr) memory = pool_->device->allocate(bytes);
  return std::make_shared<PooledBlock>(pool_, bytes, std::move(memory));
}

}  // namespace tessera
