#include "tessera/compile/batch_memory.h"

namespace tessera {

Tensor BatchMemory::tensor(DataType type, const Shape& shape) const {
  const int64_t bytes = tensor_bytes(type, shape);
  std::shared_ptr<void> block;
  {
    const std::lock_guard lock(pool_->mutex);
    std::vector<std::shared_ptr<void>>& free = pool_->free[bytes];
    if (!free.empty()) {
      block = std::move(free.back());
      free.pop_back();
    }
  }
  if (block == nullptr) block = pool_->device->allocate_pinned(bytes);
  void* memory = block.get();
  const auto give_back = [pool = pool_, bytes, block = std::move(block)](void*) {
    const std::lock_guard lock(pool->mutex);
    pool->free[bytes].push_back(block);
  };
  return Tensor::share(type, shape, {memory, give_back});
}

}  // namespace tessera
