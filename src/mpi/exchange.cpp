#include "mpi/exchange.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"
#include "tessera/base/progress.h"

namespace tessera::mpi {
namespace {

constexpr double kSlice = 0.02;  // seconds of waiting, between looks at the other ranks
constexpr double kEager = 2e-3;  // seconds in which only others that want the processor get it
constexpr auto kNap = std::chrono::microseconds(100);
constexpr int kLooksAtLeavers = 10;  // what a rank sent before it left may come after the word that it has

}  // namespace

Exchange::Exchange(std::shared_ptr<World> world, std::vector<int64_t> members, int64_t tag)
    : world_(std::move(world)), members_(std::move(members)), tag_(static_cast<int>(tag)) {}

void Exchange::run(std::span<const Piece> sent, std::span<const Piece> received,
                   const std::shared_ptr<void>& memory) {
  if (world_->is_aborted()) world_->stop("");
  Pending pending;
  try {
    begin(sent, received, pending);
    wait(pending);
  } catch (const Error& error) {
    give_up(pending);
    world_->keep(memory);
    world_->stop(error.what());
  }
}

void Exchange::begin(std::span<const Piece> sent, std::span<const Piece> received, Pending& pending) {
  pending.requests.reserve(sent.size() + received.size());
  const MPI_Comm handle = world_->session().handle();
  const std::lock_guard lock(world_->session().mutex());
  const auto add = [&](const Piece& piece, auto call, const char* what) {
    const int64_t partner = members_[static_cast<size_t>(piece.member)];
    MPI_Request request = MPI_REQUEST_NULL;
    check(call(piece.data, static_cast<int>(piece.bytes), MPI_BYTE, static_cast<int>(partner), tag_, handle,
               &request),
          what);
    pending.requests.push_back(request);
    pending.partners.push_back(partner);
  };
  for (const Piece& piece : received) add(piece, MPI_Irecv, "receiving");
  pending.received = received.size();
  for (const Piece& piece : sent) add(piece, MPI_Isend, "sending");
}

bool Exchange::is_done(Pending& pending) {
  const auto count = static_cast<int>(pending.requests.size());
  pending.indices.resize(pending.requests.size());
  int done = 0;
  const std::lock_guard lock(world_->session().mutex());
  check(MPI_Testsome(count, pending.requests.data(), &done, pending.indices.data(), MPI_STATUSES_IGNORE),
        "exchanging with other ranks");
  return std::all_of(pending.requests.begin(), pending.requests.end(),
                     [](MPI_Request request) { return request == MPI_REQUEST_NULL; });
}

void Exchange::wait(Pending& pending) {
  const auto begin = Clock::now();
  for (auto looked = begin; !is_done(pending);) {
    const bool is_eager = seconds_since(begin) < kEager;
    is_eager ? std::this_thread::yield() : std::this_thread::sleep_for(kNap);
    if (seconds_since(looked) < kSlice) continue;
    looked = Clock::now();
    // Waiting is a sign of life: it is another rank that does not come.
    note_progress();
    check_partners(pending);
  }
}

void Exchange::check_partners(Pending& pending) {
  world_->look();
  if (world_->is_aborted()) world_->stop("");
  bool waits_for_leaver = false;
  for (size_t i = 0; i < pending.requests.size(); ++i) {
    if (pending.requests[i] == MPI_REQUEST_NULL) continue;
    const int64_t partner = pending.partners[i];
    const std::string complaint = world_->complaint(partner);
    if (complaint.empty()) continue;
    const bool has_left = world_->has_left(partner);
    if (!has_left || pending.looks_at_leavers > kLooksAtLeavers) world_->stop(complaint);
    waits_for_leaver = true;
  }
  if (waits_for_leaver) ++pending.looks_at_leavers;
}

void Exchange::give_up(Pending& pending) noexcept {
  const std::lock_guard lock(world_->session().mutex());
  for (size_t i = 0; i < pending.requests.size(); ++i) {
    MPI_Request& request = pending.requests[i];
    if (request == MPI_REQUEST_NULL) continue;
    if (i < pending.received) MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
}

}  // namespace tessera::mpi
