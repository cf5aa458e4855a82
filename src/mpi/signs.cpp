#include "mpi/signs.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

namespace tessera::mpi {
namespace {

using distribute::monotonic_nanoseconds;
using distribute::RankState;

constexpr int kTag = 0;
constexpr double kNanoseconds = 1e9;  // of a second

int bytes_of(const Sign& sign) {
  return static_cast<int>(sign.kind == SignKind::aborts ? sizeof(Sign) : offsetof(Sign, reason));
}

}  // namespace

Signs::Signs(Session& session, const distribute::Rendezvous& place)
    : session_(session),
      rank_(place.rank),
      seconds_(place.heartbeat_seconds),
      known_(static_cast<size_t>(place.ranks)),
      heard_(static_cast<size_t>(place.ranks)) {
  ::gethostname(machine_.data(), machine_.size() - 1);
  distribute::RankSigns& own = known_[static_cast<size_t>(rank_)];
  distribute::Pulse::begin(own);
  own.set_state(RankState::joined);
}

void Signs::send(int64_t rank, const Sign& sign) {
  Sending& sending = sending_.emplace_back(Sending{.sign = sign, .rank = rank});
  check(MPI_Isend(&sending.sign, bytes_of(sign), MPI_BYTE, static_cast<int>(rank), kTag, session_.handle(),
                  &sending.request),
        "sending a sign of life");
}

// None to a rank that has not taken the last one.
void Signs::send_beats() {
  attention_.look();
  distribute::RankSigns& own = known_[static_cast<size_t>(rank_)];
  pulse_.beat(own);
  finish_sending();
  Sign sign{.process = own.process,
            .waits = static_cast<int32_t>(own.waits.load()),
            .silence = monotonic_nanoseconds() - own.beat,
            .machine = machine_};
  for (int64_t rank = 0; rank < std::ssize(known_); ++rank) {
    const bool waits = std::any_of(sending_.begin(), sending_.end(),
                                   [&](const Sending& sending) { return sending.rank == rank; });
    if (rank != rank_ && !waits && !has_left(rank)) send(rank, sign);
  }
}

void Signs::send_last_words(SignKind kind, const std::string& reason) {
  Sign sign{.kind = kind, .machine = machine_};
  std::memcpy(sign.reason.data(), reason.data(), std::min(reason.size(), sign.reason.size() - 1));
  for (int64_t rank = 0; rank < std::ssize(known_); ++rank) {
    if (rank != rank_) send(rank, sign);
  }
}

bool Signs::finish_sending() {
  std::erase_if(sending_, [](Sending& sending) {
    int is_done = 0;
    check(MPI_Test(&sending.request, &is_done, MPI_STATUS_IGNORE), "sending a sign of life");
    return is_done != 0;
  });
  return sending_.empty();
}

std::optional<std::string> Signs::receive() {
  std::optional<std::string> reason;
  for (;;) {
    int is_there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kTag, session_.handle(), &is_there, &status), "looking for signs");
    if (is_there == 0) return reason;
    Sign sign;
    check(MPI_Recv(&sign, sizeof(sign), MPI_BYTE, status.MPI_SOURCE, kTag, session_.handle(),
                   MPI_STATUS_IGNORE),
          "receiving a sign of life");
    take(status.MPI_SOURCE, sign);
    if (sign.kind == SignKind::aborts && !reason.has_value()) reason = sign.reason.data();
  }
}

// The age of a sign is what it had when it was sent: clocks of two machines differ.
void Signs::take(int64_t rank, const Sign& sign) {
  distribute::RankSigns& known = known_[static_cast<size_t>(rank)];
  Heard& heard = heard_[static_cast<size_t>(rank)];
  heard.time = monotonic_nanoseconds();
  if (sign.kind == SignKind::left) known.set_state(RankState::left);
  if (sign.kind != SignKind::beat || known.known_state() == RankState::left) return;
  known.process = sign.process;
  known.waits = static_cast<uint32_t>(sign.waits);
  known.beat = monotonic_nanoseconds() - sign.silence;
  if (known.known_state() == RankState::joined) return;
  heard.machine = sign.machine;
  known.set_state(RankState::joined);
}

// While this process paid attention.
double Signs::seconds_unheard(int64_t rank) const {
  const int64_t last = std::max(heard_[static_cast<size_t>(rank)].time.load(), attention_.since());
  return static_cast<double>(monotonic_nanoseconds() - last) / kNanoseconds;
}

std::string Signs::complaint(int64_t rank) const {
  if (has_left(rank)) return fmt::format("rank {} has left", rank);
  const distribute::RankSigns& known = known_[static_cast<size_t>(rank)];
  std::string silence = distribute::silence_of(known_, rank, seconds_, attention_);
  if (known.known_state() != RankState::joined || rank == rank_) return silence;
  const char* machine = heard_[static_cast<size_t>(rank)].machine.data();
  // Whoever only hangs is heard of: its beats say for how long it has done nothing.
  const double seconds = seconds_unheard(rank);
  if (seconds > seconds_ || (!silence.empty() && seconds > seconds_ / 2))
    return fmt::format(
        "rank {} (process {} on {}) has died, is stopped or cannot be reached: nothing was heard of it for "
        "{:.0f} s",
        rank, known.process.load(), machine, seconds);
  return silence.empty() ? "" : fmt::format("{} ({})", silence, machine);
}

bool Signs::has_left(int64_t rank) const {
  return known_[static_cast<size_t>(rank)].known_state() == RankState::left;
}

bool Signs::hears_another(double seconds) const {
  for (int64_t rank = 0; rank < std::ssize(known_); ++rank) {
    if (rank != rank_ && !has_left(rank) && seconds_unheard(rank) <= seconds) return true;
  }
  return false;
}

bool Signs::all_others_left() const {
  for (int64_t rank = 0; rank < std::ssize(known_); ++rank) {
    if (rank != rank_ && !has_left(rank)) return false;
  }
  return true;
}

}  // namespace tessera::mpi
