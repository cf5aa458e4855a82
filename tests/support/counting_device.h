// The reference's loops on memory that is counted, and may be scarce.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

namespace tessera::testing {

// Counts the bytes that are allocated, and the most that ever were.
class CountingDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override { return {.name = "counting", .versions = {}}; }
  std::vector<KernelCandidate> candidates(const Node&) const override { return {reference_candidate()}; }
  std::shared_ptr<void> allocate(int64_t bytes) override {
    require(*live_ + bytes <= limit_, ErrorCode::out_of_memory, "{} bytes are beyond the limit", bytes);
    std::shared_ptr<void> memory = HostMemoryDevice::allocate(bytes);
    *live_ += bytes;
    peak_ = std::max(peak_, *live_);
    void* pointer = memory.get();
    return {pointer, [memory, bytes, live = live_](void*) { *live -= bytes; }};
  }
  // Of the host: not counted, and asked for by other threads.
  std::shared_ptr<void> allocate_pinned(int64_t bytes) override { return HostMemoryDevice::allocate(bytes); }
  std::optional<int64_t> peak_bytes() const override { return peak_; }
  int64_t live_bytes() const { return *live_; }
  void set_limit(int64_t bytes) { limit_ = bytes; }

 private:
  std::shared_ptr<int64_t> live_ = std::make_shared<int64_t>(0);
  int64_t peak_ = 0;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
};

}  // namespace tessera::testing
