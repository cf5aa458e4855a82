#include "distribute/rank_watch.h"

#include <chrono>

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tessera/base/error.h"

namespace tessera::distribute {

RankWatch::RankWatch(GroupMemory memory, int64_t rank, double seconds)
    : memory_(std::move(memory)),
      rank_(rank),
      seconds_(seconds),
      processes_(static_cast<size_t>(memory_.ranks), -1) {
  RankSigns& own = signs_of(rank_);
  uint32_t absent = static_cast<uint32_t>(RankState::absent);
  require(own.state.compare_exchange_strong(absent, static_cast<uint32_t>(RankState::joined)),
          ErrorCode::invalid_argument, "rank {} is there already (process {})", rank_, own.process.load());
  Pulse::begin(own);
  if (seconds_ > 0) thread_ = std::thread([this] { watch(); });
}

RankWatch::~RankWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  signs_of(rank_).set_state(RankState::left);
  for (const int process : processes_) {
    if (process >= 0) ::close(process);
  }
}

void RankWatch::watch() {
  const std::chrono::duration<double> pause(Pulse::pause(seconds_));
  std::unique_lock lock(mutex_);
  while (!ends_) {
    attention_.look();
    pulse_.beat(signs_of(rank_));
    wake_.wait_for(lock, pause);
  }
}

// Also one that nobody has waited for yet.
bool RankWatch::is_dead(int64_t rank) {
  const std::lock_guard lock(processes_mutex_);
  int& process = processes_[static_cast<size_t>(rank)];
  const int id = signs_of(rank).process.load(std::memory_order_relaxed);
  if (process < 0) process = static_cast<int>(::syscall(SYS_pidfd_open, id, 0));
  if (process < 0) return errno == ESRCH;
  pollfd poll{process, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

bool RankWatch::has_left(int64_t rank) const {
  return signs_of(rank).known_state() == RankState::left;
}

std::string RankWatch::complaint(int64_t rank) {
  const RankSigns& signs = signs_of(rank);
  const auto left = [&] { return has_left(rank); };
  if (!left() && seconds_ > 0 && signs.known_state() == RankState::joined && is_dead(rank) && !left())
    return fmt::format("rank {} (process {}) has died", rank, signs.process.load(std::memory_order_relaxed));
  if (left()) return fmt::format("rank {} has left", rank);
  return seconds_ > 0 ? silence_of(memory_.header().signs_of(memory_.ranks), rank, seconds_, attention_) : "";
}

}  // namespace tessera::distribute
