// Signs of life that ranks give, and which rank is to blame for a silence.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::distribute {

enum class RankState : uint32_t { absent, joined, left };

// What is known of a rank. Zeros at first; may lie in memory that processes share.
struct alignas(64) RankSigns {
  std::atomic<uint32_t> state;   // RankState
  std::atomic<int32_t> process;  // its id
  std::atomic<int64_t> beat;     // nanoseconds on the monotonic clock, of its last sign of life
  std::atomic<uint32_t> waits;   // 1: for a device that may wait for other ranks

  RankState known_state() const { return static_cast<RankState>(state.load(std::memory_order_acquire)); }
  void set_state(RankState value) { state.store(static_cast<uint32_t>(value), std::memory_order_release); }
};

int64_t monotonic_nanoseconds();

// What this process gives, by what base/progress.h counts.
class Pulse {
 public:
  // As a rank that has just come.
  static void begin(RankSigns& own);
  // Again and again, at least every pause(): a sign of life where something was done since.
  void beat(RankSigns& own);
  // In seconds, where so many seconds of silence count as hanging.
  static double pause(double seconds);

 private:
  uint64_t steps_ = 0;  // of progress, at the last beat
};

// Since when a process has looked at others again and again. One that was stopped, perhaps with those others,
// has seen nothing of them meanwhile.
class Attention {
 public:
  void look();
  int64_t since() const { return since_.load(std::memory_order_relaxed); }  // on the monotonic clock

 private:
  std::atomic<int64_t> since_{monotonic_nanoseconds()};
  int64_t last_ = since_;
};

// What is wrong with a rank of a separate process that has not beaten for so many seconds while this one paid
// attention: it hangs, or has not come; "" where nothing is. `ranks` are those of all.
std::string silence_of(std::span<const RankSigns> ranks, int64_t rank, double seconds,
                       const Attention& attention);

}  // namespace tessera::distribute
