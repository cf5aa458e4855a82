#include "tessera/distribute/rank_signs.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/progress.h"

namespace tessera::distribute {
namespace {

constexpr double kNanoseconds = 1e9;    // of a second
constexpr double kBeatsOfTimeout = 10;  // so many chances to beat before a rank counts as hanging
constexpr double kLongestBeat = 0.5;    // seconds
constexpr double kLapse = 2;            // seconds without a look, after which attention begins anew

double seconds_from(int64_t nanoseconds) {
  return static_cast<double>(monotonic_nanoseconds() - nanoseconds) / kNanoseconds;
}

bool is_silent(const RankSigns& rank, double seconds, const Attention& attention) {
  const int64_t beat = rank.beat.load(std::memory_order_acquire);
  return seconds_from(std::max(beat, attention.since())) > seconds;
}

// Whether a rank works, for which others may be waiting.
bool any_works(std::span<const RankSigns> ranks, double seconds, const Attention& attention) {
  return std::any_of(ranks.begin(), ranks.end(), [&](const RankSigns& rank) {
    return rank.known_state() == RankState::joined && rank.waits.load(std::memory_order_relaxed) == 0 &&
           !is_silent(rank, seconds, attention);
  });
}

}  // namespace

int64_t monotonic_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * static_cast<int64_t>(kNanoseconds) + now.tv_nsec;
}

void Pulse::begin(RankSigns& own) {
  own.process.store(::getpid(), std::memory_order_relaxed);
  own.beat.store(monotonic_nanoseconds(), std::memory_order_release);
}

// A thread that beats says that the process is not stopped; only progress says that it does not hang.
void Pulse::beat(RankSigns& own) {
  own.waits.store(progress::waits.load(std::memory_order_relaxed) > 0 ? 1 : 0, std::memory_order_relaxed);
  const uint64_t steps = progress::steps.load(std::memory_order_relaxed);
  const bool works = progress::long_works.load(std::memory_order_relaxed) > 0;
  if (!works && steps == steps_) return;
  steps_ = steps;
  own.beat.store(monotonic_nanoseconds(), std::memory_order_relaxed);
}

double Pulse::pause(double seconds) {
  return std::min(seconds / kBeatsOfTimeout, kLongestBeat);
}

void Attention::look() {
  const int64_t now = monotonic_nanoseconds();
  if (static_cast<double>(now - last_) > kLapse * kNanoseconds) since_.store(now, std::memory_order_relaxed);
  last_ = now;
}

std::string silence_of(std::span<const RankSigns> ranks, int64_t rank, double seconds,
                       const Attention& attention) {
  const RankSigns& signs = ranks[static_cast<size_t>(rank)];
  const RankState state = signs.known_state();
  if (state == RankState::left) return "";
  const int64_t beat = signs.beat.load(std::memory_order_acquire);
  if (state == RankState::absent || beat == 0) {
    if (seconds_from(attention.since()) <= seconds) return "";
    return fmt::format("rank {} has not come within {:.0f} s", rank, seconds);
  }
  if (!is_silent(signs, seconds, attention)) return "";
  const bool waits = signs.waits.load(std::memory_order_relaxed) != 0;
  if (waits && any_works(ranks, seconds, attention)) return "";
  return fmt::format("rank {} (process {}) hangs: it has given no sign of life for {:.0f} s", rank,
                     signs.process.load(std::memory_order_relaxed), seconds_from(beat));
}

}  // namespace tessera::distribute
