// Messages of a group that all its members wait for.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "mpi/world.h"

namespace tessera::mpi {

// Bytes that go to a member, or come from it.
struct Piece {
  int64_t member = 0;
  void* data = nullptr;
  int64_t bytes = 0;
};

class Exchange {
 public:
  // Members by their ranks in the world; messages have the tag, so that groups with a member in common have
  // different ones.
  Exchange(std::shared_ptr<World> world, std::vector<int64_t> members, int64_t tag);

  // Returns when all pieces have come and those sent may be changed. What member a sends b is in one call of
  // each, and both know its bytes. `memory` owns all pieces, and is kept for ever where this throws: MPI may
  // still be using it. Throws Error(rank_failure) where the world is aborted, or a member that is waited for
  // has left, died or hangs, which aborts it.
  void run(std::span<const Piece> sent, std::span<const Piece> received, const std::shared_ptr<void>& memory);

  const std::shared_ptr<World>& world() const { return world_; }
  const std::vector<int64_t>& members() const { return members_; }

 private:
  struct Pending {
    std::vector<MPI_Request> requests;
    std::vector<int64_t> partners;  // ranks in the world
    size_t received = 0;            // so many of the first are of what comes
    std::vector<int> indices;       // MPI writes here which are done
    int looks_at_leavers = 0;
  };

  void begin(std::span<const Piece> sent, std::span<const Piece> received, Pending& pending);
  void wait(Pending& pending);
  bool is_done(Pending& pending);
  void check_partners(Pending& pending);
  void give_up(Pending& pending) noexcept;

  std::shared_ptr<World> world_;
  std::vector<int64_t> members_;
  int tag_;
};

}  // namespace tessera::mpi
