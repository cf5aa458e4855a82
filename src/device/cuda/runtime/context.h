// One GPU: what it is, its context, its memory, and which queues there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <vector>

#include "device/cuda/runtime/libraries.h"

namespace tessera::cuda {

class CudaQueue;
class MemoryPool;
class ModuleCache;

// What kernels are printed and compiled for.
struct GpuTraits {
  std::string model;
  int architecture = 90;  // 10 * major + minor of the compute capability
  int multiprocessors = 132;
  int64_t memory_bytes = 0;
  int64_t shared_bytes = int64_t{228} << 10;  // shared memory of a multiprocessor
  double clock_hertz = 0;                     // the highest, of the multiprocessors
  double bytes_per_second = 0;                // between the chip and its memory

  // Bytes of shared memory for a block, where a multiprocessor holds so many blocks. The driver has a part of
  // each.
  int64_t block_shared_bytes(int64_t blocks) const { return shared_bytes / blocks - 1024; }
};

// Those of this machine that the driver shows. Throws as Context().
int count_gpus();

class Context {
 public:
  // A GPU of this machine. Throws Error(unsupported) that says what was looked for, and Error(device_fault).
  explicit Context(int ordinal);
  // A card that is not there, for plans: "a100", "h100", "h200" or "b200". Throws Error(invalid_argument).
  explicit Context(const std::string& card);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  bool present() const { return context_ != nullptr; }
  const GpuTraits& traits() const { return traits_; }
  // What no other GPU of any machine has.
  std::array<char, 16> identity() const;
  CUcontext handle() const { return context_; }
  ModuleCache& modules() const { return *modules_; }
  // Makes the GPU current for the calling thread; every entry into the backend starts with it.
  void enter() const;
  // Throws Error(device_fault) where the GPU has failed: for those whose own word for it says less.
  void check_sound() const;

  // Done when they return; ordered with no queue's work.
  void copy_from_host(void* device, const void* host, int64_t bytes) const;
  void copy_to_host(void* host, const void* device, int64_t bytes) const;

  // Told by queues as they come and go.
  void add_queue(CudaQueue& queue);
  void remove_queue(CudaQueue& queue);
  // Waits for the work of all queues. False where one of them cannot be waited for now.
  bool try_synchronize();

  // Device memory, filled with zeros when this returns. When it is freed, it may be handed out again at once:
  // all work that uses it must be done by then. Throws Error(out_of_memory).
  std::shared_ptr<void> allocate(int64_t bytes);
  // Host memory that copies use as it is. Throws Error(out_of_memory).
  std::shared_ptr<void> allocate_pinned(int64_t bytes);
  // Whether all of these bytes are of a block that allocate_pinned() gave.
  bool is_pinned(const void* memory, int64_t bytes);
  // What could still be allocated, in bytes.
  int64_t free_bytes() const;
  // Null on a GPU without virtual memory, where each block is the driver's own.
  const MemoryPool* pool() const { return pool_.get(); }

  // What a library's users keep for this GPU, such as its handle: made as Part(context) for whoever asks for
  // it first, and kept as long as the context. Part's constructor must ask for no other part.
  template <typename Part>
  Part& part() {
    const std::lock_guard lock(parts_mutex_);
    std::shared_ptr<void>& part = parts_[std::type_index(typeid(Part))];
    if (part == nullptr) part = std::make_shared<Part>(*this);
    return *static_cast<Part*>(part.get());
  }

 private:
  GpuTraits traits_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;  // of what is waited for at once
  std::mutex mutex_;           // guards what follows
  std::vector<CudaQueue*> queues_;
  std::map<const std::byte*, int64_t> pinned_;  // blocks and their bytes
  std::shared_ptr<MemoryPool> pool_;            // blocks keep it
  std::unique_ptr<ModuleCache> modules_;
  std::mutex parts_mutex_;
  std::map<std::type_index, std::shared_ptr<void>> parts_;
};

inline CUdeviceptr address(const void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

}  // namespace tessera::cuda
