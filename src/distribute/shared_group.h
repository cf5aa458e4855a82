// The memory that the ranks of a local group share, and how they wait for each other in it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tessera/base/data_type.h"

namespace tessera::distribute {

inline constexpr int64_t kMostRanks = 256;

// What a rank is doing, so that others can say what differs.
struct Call {
  uint32_t function = 0;  // of CallName
  uint32_t type = 0;
  uint32_t detail = 0;  // reduction or root
  uint32_t number = 0;  // how many calls were before it
  int64_t count = 0;    // elements or bytes
  bool operator==(const Call&) const = default;
};

enum class RankState : uint32_t { absent, joined, left };

// Zeros at first. Only atomics are written by several ranks; a rank's call is read by the others after a
// barrier.
struct alignas(64) RankEntry {
  std::atomic<uint32_t> state;     // RankState
  std::atomic<int32_t> process;    // its id
  std::atomic<int64_t> beat;       // nanoseconds on the monotonic clock, of its last sign of life
  std::atomic<uint32_t> waits;     // 1: for a device that may wait for other ranks
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
  std::array<RankEntry, kMostRanks> entries;
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

int64_t monotonic_nanoseconds();

// Sleeps until the word is no longer `value`, somebody wakes it, or the time is over.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, int64_t nanoseconds);
void futex_wake_all(const std::atomic<uint32_t>& word);

// Writes the reason, unless there is one already, and wakes those that wait.
void abort_group(GroupHeader& header, const std::string& reason) noexcept;
// "" while nobody aborted.
std::string abort_reason(const GroupHeader& header);

}  // namespace tessera::distribute
