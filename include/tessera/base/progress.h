// Signs of life of this process, for whoever watches over it.
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera {

namespace progress {
inline std::atomic<uint64_t> steps{0};
inline std::atomic<int64_t> long_works{0};
inline std::atomic<int64_t> waits{0};
}  // namespace progress

// Something was done: a node was run, a batch was read. Costs a nanosecond.
inline void note_progress() noexcept {
  progress::steps.fetch_add(1, std::memory_order_relaxed);
}

// Lives as long as something that may take minutes without a step in between: reading data, compiling,
// tuning, saving. The process counts as alive meanwhile, unless it is stopped or dead.
class LongWork {
 public:
  LongWork() { progress::long_works.fetch_add(1, std::memory_order_relaxed); }
  ~LongWork() {
    progress::long_works.fetch_sub(1, std::memory_order_relaxed);
    note_progress();
  }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;
};

// Lives as long as this process waits for a device that may wait for other ranks: its silence is theirs.
class WaitForRanks {
 public:
  WaitForRanks() { progress::waits.fetch_add(1, std::memory_order_relaxed); }
  ~WaitForRanks() {
    progress::waits.fetch_sub(1, std::memory_order_relaxed);
    note_progress();
  }
  WaitForRanks(const WaitForRanks&) = delete;
  WaitForRanks& operator=(const WaitForRanks&) = delete;
};

}  // namespace tessera
