#include "mpi/world.h"

#include <algorithm>
#include <chrono>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"

namespace tessera::mpi {
namespace {

constexpr double kTelling = 1;  // seconds in which all should hear of an abort
constexpr double kGoodbye = 4;  // seconds for which who was aborted waits for the others
constexpr double kUnheard = 1;  // seconds, and two beats at least
constexpr auto kLook = std::chrono::milliseconds(2);  // between looks for what the end waits for

std::chrono::duration<double> seconds(double count) {
  return std::chrono::duration<double>(count);
}

}  // namespace

std::shared_ptr<World> World::join(const distribute::Rendezvous& place) {
  static std::mutex mutex;
  static std::weak_ptr<World> current;
  static bool has_begun = false;
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<World> world = current.lock()) return world;
  require(!has_begun, ErrorCode::unsupported, "MPI has ended in this process, and begins only once");
  has_begun = true;
  // Where a call of MPI does not return, it stays with its thread.
  std::shared_ptr<World> world(new World(place), [](World* left) {
    if (left->leave()) delete left;
  });
  world->wait_for_start();
  current = world;
  return world;
}

void World::wait_for_start() {
  thread_ = std::thread([this] { live(); });
  std::unique_lock lock(mutex_);
  // MPI alone takes seconds to begin where the machine is busy, however short the heartbeat.
  constexpr double kLeastSeconds = 30;
  const double patience = std::max(place_.heartbeat_seconds, kLeastSeconds);
  changed_.wait_for(lock, seconds(patience), [this] { return phase_ != Phase::begins; });
  if (problem_ != nullptr) std::rethrow_exception(problem_);
  require(phase_ == Phase::runs, ErrorCode::rank_failure, "not all of {} ranks have come within {:.0f} s",
          place_.ranks, patience);
}

// Whether the thread has ended.
bool World::leave() {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::runs) phase_ = Phase::leaves;
  changed_.notify_all();
  changed_.wait(lock, [this] { return phase_ != Phase::leaves; });
  changed_.wait_for(lock, seconds(phase_ == Phase::begins ? 0 : place_.heartbeat_seconds),
                    [this] { return phase_ == Phase::ended; });
  const bool has_ended = phase_ == Phase::ended;
  lock.unlock();
  has_ended ? thread_.join() : thread_.detach();
  return has_ended;
}

void World::enter(Phase phase) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  changed_.notify_all();
}

void World::live() {
  try {
    session_.begin(place_);
  } catch (...) {
    problem_ = std::current_exception();
    return enter(Phase::ended);
  }
  enter(Phase::runs);
  try {
    run();
    tell(SignKind::left, "");
    if (wait_for_goodbyes()) {
      enter(Phase::ends);
      session_.end();
    }
  } catch (const std::exception& error) {
    take_abort(error.what());
    std::unique_lock lock(mutex_);
    tells_ = false;  // whoever waits for that need not
    changed_.notify_all();
    changed_.wait(lock, [this] { return phase_ != Phase::runs; });
  }
  enter(Phase::ended);
}

void World::run() {
  const auto pause = seconds(distribute::Pulse::pause(place_.heartbeat_seconds));
  std::unique_lock lock(mutex_);
  while (phase_ == Phase::runs) {
    const std::string reason = reason_;
    const bool tells = tells_;
    lock.unlock();
    if (tells) tell(SignKind::aborts, reason);
    {
      const std::lock_guard session_lock(session_.mutex());
      signs_.send_beats();
    }
    look();
    lock.lock();
    if (tells) tells_ = false;
    if (tells) changed_.notify_all();
    changed_.wait_for(lock, pause, [this] { return phase_ != Phase::runs || tells_; });
  }
}

void World::tell(SignKind kind, const std::string& reason) {
  {
    const std::lock_guard lock(session_.mutex());
    signs_.send_last_words(kind, reason);
  }
  for (const auto begin = Clock::now(); seconds_since(begin) < kTelling;) {
    {
      const std::lock_guard lock(session_.mutex());
      if (signs_.finish_sending()) return;
    }
    std::this_thread::sleep_for(kLook);
  }
}

// Whether all ranks leave as this one does, so that MPI may end: its end waits for all.
bool World::wait_for_goodbyes() {
  // Later no more: nobody sends beats to who has left.
  const double patience = signs_.hears_another(kUnheard) ? kGoodbye : 0;
  for (const auto begin = Clock::now();; std::this_thread::sleep_for(kLook)) {
    look();
    if (signs_.all_others_left()) return true;
    if (is_aborted()) {
      if (seconds_since(begin) > patience) return false;
      continue;
    }
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      if (rank != this->rank() && !complaint(rank).empty() && !has_left(rank)) return false;
    }
  }
}

void World::look() {
  std::optional<std::string> reason;
  {
    const std::lock_guard lock(session_.mutex());
    reason = signs_.receive();
  }
  if (reason.has_value()) take_abort(*reason);
}

void World::take_abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  reason_ = reason;
  aborted_ = true;
}

void World::abort(const std::string& reason) noexcept {
  try {
    std::unique_lock lock(mutex_);
    if (aborted_) return;
    reason_ = reason;
    aborted_ = true;
    if (phase_ != Phase::runs) return;
    tells_ = true;
    changed_.notify_all();
    // Twice as long as it takes: the process may end after this.
    changed_.wait_for(lock, seconds(2 * kTelling), [this] { return !tells_; });
  } catch (...) {  // NOLINT(bugprone-empty-catch): the others will miss this rank
  }
}

void World::stop(const std::string& reason) {
  abort(reason);
  std::string holds;
  {
    const std::lock_guard lock(mutex_);
    holds = reason_;
  }
  fail(ErrorCode::rank_failure, "{}", holds);
}

void World::use_tag(int64_t tag) {
  require(tag <= session_.largest_tag(), ErrorCode::unsupported, "MPI has tags for {} groups, and no more",
          session_.largest_tag());
  free_tag_ = tag + 1;
}

void World::keep(std::shared_ptr<void> memory) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(memory));
}

}  // namespace tessera::mpi
