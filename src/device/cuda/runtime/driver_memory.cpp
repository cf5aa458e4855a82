#include "device/cuda/runtime/driver_memory.h"

#include "tessera/base/rounding.h"

#include "device/cuda/runtime/check.h"

namespace tessera::cuda {
namespace {

// Addresses cost nothing; blocks rarely need more of them than memory.
constexpr int64_t kRangesPerMemory = 4;
// Of the GPU's memory, kept for later blocks: what tuning and bindings free and need again is mostly less.
constexpr int64_t kIdleShare = 32;
constexpr int64_t kLargeGranule = int64_t{32} << 20;

class DriverMemory : public VirtualMemory {
 public:
  DriverMemory(CUdevice device, std::function<bool()> wait) : wait_(std::move(wait)) {
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    size_t granularity = 0;
    check(driver().cuMemGetAllocationGranularity_(&granularity, &properties_,
                                                  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "asking how the GPU's memory is divided");
    granularity_ = static_cast<int64_t>(granularity);
  }

  int64_t granularity() const override { return granularity_; }

  uint64_t reserve(int64_t bytes) override {
    CUdeviceptr address = 0;
    check(driver().cuMemAddressReserve_(&address, static_cast<size_t>(bytes), 0, 0, 0),
          "reserving addresses");
    return address;
  }

  void release(uint64_t address, int64_t bytes) override {
    driver().cuMemAddressFree_(address, static_cast<size_t>(bytes));
  }

  std::optional<Granule> create(int64_t bytes) override {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult status = driver().cuMemCreate_(&handle, static_cast<size_t>(bytes), &properties_, 0);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) return std::nullopt;
    check(status, "allocating memory");
    return Granule{handle, bytes};
  }

  void destroy(const Granule& granule) override { driver().cuMemRelease_(granule.handle); }

  void map(uint64_t address, const std::vector<Granule>& granules) override {
    int64_t mapped = 0;
    CUresult status = CUDA_SUCCESS;
    for (const Granule& granule : granules) {
      status = driver().cuMemMap_(address + static_cast<uint64_t>(mapped), static_cast<size_t>(granule.bytes),
                                  0, granule.handle, 0);
      if (status != CUDA_SUCCESS) break;
      mapped += granule.bytes;
    }
    // Once for all of them: this is what takes longest.
    const CUmemAccessDesc access{properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (status == CUDA_SUCCESS)
      status = driver().cuMemSetAccess_(address, static_cast<size_t>(mapped), &access, 1);
    if (status == CUDA_SUCCESS) return;
    for (const Granule& granule : granules) {
      if (mapped == 0) break;
      unmap(address, granule.bytes);
      address += static_cast<uint64_t>(granule.bytes);
      mapped -= granule.bytes;
    }
    check(status, "mapping memory");
  }

  void unmap(uint64_t address, int64_t bytes) override {
    driver().cuMemUnmap_(address, static_cast<size_t>(bytes));
  }

  bool wait() override { return wait_(); }

 private:
  std::function<bool()> wait_;
  CUmemAllocationProp properties_{};
  int64_t granularity_ = 0;
};

// The pool with the memory that it works on, which outlives it.
struct DriverPool {
  DriverPool(CUdevice device, std::function<bool()> wait, int64_t memory_bytes)
      : memory(device, std::move(wait)),
        pool(memory, {.range_bytes = kRangesPerMemory * memory_bytes,
                      .idle_limit_bytes = memory_bytes / kIdleShare,
                      .large_granule_bytes = round_up(kLargeGranule, memory.granularity())}) {}

  DriverMemory memory;
  MemoryPool pool;
};

}  // namespace

std::shared_ptr<MemoryPool> make_memory_pool(CUdevice device, std::function<bool()> wait,
                                             int64_t memory_bytes) {
  const auto owner = std::make_shared<DriverPool>(device, std::move(wait), memory_bytes);
  return {owner, &owner->pool};
}

}  // namespace tessera::cuda
