// The memory that the ranks of a local group share, and how they wait for each other in it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tessera/distribute/call.h"
#include "tessera/distribute/rank_signs.h"

namespace tessera::distribute {

inline constexpr int64_t kMostRanks = 256;

// Zeros at first. Only atomics are written by several ranks; a rank's call is read by the others after a
// barrier.
struct alignas(64) RankEntry {
  std::atomic<uint64_t> arrivals;  // barriers that it has come to
  std::array<Call, 2> calls;       // of the present chunk and the one before
};

struct GroupHeader {
  std::atomic<uint64_t> layout;  // what all must have been built with; 0 while nobody was here
  std::atomic<int64_t> ranks;
  alignas(64) std::atomic<uint32_t> arrived;     // at the present barrier
  alignas(64) std::atomic<uint32_t> generation;  // of the barrier: how many all have passed; a futex
  alignas(64) std::atomic<uint32_t> aborted;     // 0; 1 while the reason is written; 2
  std::array<char, 1024> reason;
  std::array<RankSigns, kMostRanks> signs;  // in the memory of the group of all
  std::array<RankEntry, kMostRanks> entries;

  std::span<const RankSigns> signs_of(int64_t count) const {
    return {signs.data(), static_cast<size_t>(count)};
  }
};

// Slots for each rank and one for results, each twice.
struct GroupMemory {
  GroupMemory(std::shared_ptr<void> shared, int64_t count);

  static int64_t bytes(int64_t ranks);

  GroupHeader& header() const { return *static_cast<GroupHeader*>(memory.get()); }
  std::byte* slot(int64_t rank, size_t parity) const;
  std::byte* result(size_t parity) const { return slot(ranks, parity); }

  std::shared_ptr<void> memory;  // zeros at first, shared by the ranks
  int64_t ranks;
};

inline constexpr int64_t kSlotBytes = 1 << 18;

// Sleeps until the word is no longer `value`, somebody wakes it, or the time is over.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, int64_t nanoseconds);
void futex_wake_all(const std::atomic<uint32_t>& word);

// Writes the reason, unless there is one already, and wakes those that wait.
void abort_group(GroupHeader& header, const std::string& reason) noexcept;
// "" while nobody aborted.
std::string abort_reason(const GroupHeader& header);

}  // namespace tessera::distribute
