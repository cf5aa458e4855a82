// The memory pool's driver: CUDA's virtual memory (cuMem...) of one GPU.
#pragma once

#include <functional>
#include <memory>

#include "device/cuda/runtime/libraries.h"
#include "device/cuda/runtime/memory_pool.h"

namespace tessera::cuda {

// A pool for a GPU of so much memory; `wait` is its VirtualMemory::wait(). The GPU must have
// CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED.
std::shared_ptr<MemoryPool> make_memory_pool(CUdevice device, std::function<bool()> wait,
                                             int64_t memory_bytes);

}  // namespace tessera::cuda
