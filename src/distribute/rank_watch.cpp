#include "distribute/rank_watch.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tessera/base/error.h"
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

RankState state_of(const RankEntry& entry) {
  return static_cast<RankState>(entry.state.load(std::memory_order_acquire));
}

}  // namespace

RankWatch::RankWatch(GroupMemory memory, int64_t rank, double seconds)
    : memory_(std::move(memory)),
      rank_(rank),
      seconds_(seconds),
      processes_(static_cast<size_t>(memory_.ranks), -1) {
  RankEntry& own = memory_.header().entries[static_cast<size_t>(rank_)];
  uint32_t absent = static_cast<uint32_t>(RankState::absent);
  require(own.state.compare_exchange_strong(absent, static_cast<uint32_t>(RankState::joined)),
          ErrorCode::invalid_argument, "rank {} is there already (process {})", rank_, own.process.load());
  own.process.store(::getpid(), std::memory_order_relaxed);
  own.beat.store(monotonic_nanoseconds(), std::memory_order_release);
  if (seconds_ > 0) thread_ = std::thread([this] { watch(); });
}

RankWatch::~RankWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  memory_.header().entries[static_cast<size_t>(rank_)].state.store(static_cast<uint32_t>(RankState::left),
                                                                   std::memory_order_release);
  for (const int process : processes_) {
    if (process >= 0) ::close(process);
  }
}

void RankWatch::watch() {
  const std::chrono::duration<double> pause(std::min(seconds_ / kBeatsOfTimeout, kLongestBeat));
  std::unique_lock lock(mutex_);
  while (!ends_) {
    attention_.look();
    beat();
    wake_.wait_for(lock, pause);
  }
}

// A thread that beats says that the process is not stopped; only progress says that it does not hang.
void RankWatch::beat() {
  RankEntry& own = memory_.header().entries[static_cast<size_t>(rank_)];
  own.waits.store(progress::waits.load(std::memory_order_relaxed) > 0 ? 1 : 0, std::memory_order_relaxed);
  const uint64_t steps = progress::steps.load(std::memory_order_relaxed);
  const bool works = progress::long_works.load(std::memory_order_relaxed) > 0;
  if (!works && steps == steps_) return;
  steps_ = steps;
  own.beat.store(monotonic_nanoseconds(), std::memory_order_relaxed);
}

// Also one that nobody has waited for yet.
bool RankWatch::is_dead(int64_t rank) {
  const std::lock_guard lock(processes_mutex_);
  int& process = processes_[static_cast<size_t>(rank)];
  const int id = memory_.header().entries[static_cast<size_t>(rank)].process.load(std::memory_order_relaxed);
  if (process < 0) process = static_cast<int>(::syscall(SYS_pidfd_open, id, 0));
  if (process < 0) return errno == ESRCH;
  pollfd poll{process, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

void Attention::look() {
  const int64_t now = monotonic_nanoseconds();
  if (static_cast<double>(now - last_) > kLapse * kNanoseconds) since_.store(now, std::memory_order_relaxed);
  last_ = now;
}

namespace {

bool is_silent(const RankEntry& entry, double seconds, const Attention& attention) {
  const int64_t beat = entry.beat.load(std::memory_order_acquire);
  return seconds_from(std::max(beat, attention.since())) > seconds;
}

// Whether a rank works, for which others may be waiting.
bool any_works(const GroupHeader& header, double seconds, const Attention& attention) {
  const auto ranks = static_cast<size_t>(header.ranks.load(std::memory_order_relaxed));
  return std::any_of(header.entries.begin(), header.entries.begin() + ranks, [&](const RankEntry& entry) {
    return state_of(entry) == RankState::joined && entry.waits.load(std::memory_order_relaxed) == 0 &&
           !is_silent(entry, seconds, attention);
  });
}

}  // namespace

std::string silence_of(const GroupHeader& header, int64_t rank, double seconds, const Attention& attention) {
  const RankEntry& entry = header.entries[static_cast<size_t>(rank)];
  const RankState state = state_of(entry);
  if (state == RankState::left) return "";
  const int64_t beat = entry.beat.load(std::memory_order_acquire);
  if (state == RankState::absent || beat == 0) {
    if (seconds_from(attention.since()) <= seconds) return "";
    return fmt::format("rank {} has not come within {:.0f} s", rank, seconds);
  }
  if (!is_silent(entry, seconds, attention)) return "";
  const bool waits = entry.waits.load(std::memory_order_relaxed) != 0;
  if (waits && any_works(header, seconds, attention)) return "";
  return fmt::format("rank {} (process {}) hangs: it has given no sign of life for {:.0f} s", rank,
                     entry.process.load(std::memory_order_relaxed), seconds_from(beat));
}

bool RankWatch::has_left(int64_t rank) const {
  return state_of(memory_.header().entries[static_cast<size_t>(rank)]) == RankState::left;
}

std::string RankWatch::complaint(int64_t rank) {
  const RankEntry& entry = memory_.header().entries[static_cast<size_t>(rank)];
  const auto left = [&] { return has_left(rank); };
  if (!left() && seconds_ > 0 && state_of(entry) == RankState::joined && is_dead(rank) && !left())
    return fmt::format("rank {} (process {}) has died", rank, entry.process.load(std::memory_order_relaxed));
  if (left()) return fmt::format("rank {} has left", rank);
  return seconds_ > 0 ? silence_of(memory_.header(), rank, seconds_, attention_) : "";
}

}  // namespace tessera::distribute
