// Which rank is to blame for a silence.
#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "tessera/distribute/exchange.h"
#include "tessera/distribute/rank_signs.h"

#include "support/expect_error.h"
#include "support/ranks.h"

namespace tessera::testing {
namespace {

constexpr double kSeconds = 0.05;

// Two ranks of which nobody has given a sign of life for longer than that.
struct Silent {
  std::array<distribute::RankSigns, 2> ranks{};
  distribute::Attention attention;

  Silent() {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].set_state(distribute::RankState::joined);
      beat(rank);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }

  void beat(size_t rank) { ranks[rank].beat = distribute::monotonic_nanoseconds(); }
  void waits(size_t rank) { ranks[rank].waits = 1; }
  bool is_blamed(int64_t rank) const {
    return !distribute::silence_of(ranks, rank, kSeconds, attention).empty();
  }
};

TEST(Silence, IsAFaultOfWhoeverIsSilent) {
  Silent group;
  EXPECT_TRUE(group.is_blamed(0));
  group.beat(0);
  EXPECT_FALSE(group.is_blamed(0));
  EXPECT_TRUE(group.is_blamed(1));
}

// Its GPU waits for a rank that compiles, say.
TEST(Silence, IsNoneOfWhoWaitsForARankThatWorks) {
  Silent group;
  group.waits(0);
  group.beat(1);
  EXPECT_FALSE(group.is_blamed(0));
}

TEST(Silence, IsAFaultWhereNobodyWorks) {
  Silent group;
  group.waits(0);
  EXPECT_TRUE(group.is_blamed(0));
  EXPECT_TRUE(group.is_blamed(1));
  group.waits(1);
  group.beat(1);  // it gives signs of life, but it waits, too
  EXPECT_TRUE(group.is_blamed(0));
}

TEST(Check, ThrowsWhereARankHasAbortedAndNotWhereOneHasLeft) {
  std::vector<std::shared_ptr<Communicator>> group = distribute::thread_group(3);
  group[0]->check();
  group[2].reset();
  group[0]->check();
  group[1]->abort("rank 1: the disk is full");
  EXPECT_ERROR(group[0]->check(), ErrorCode::rank_failure, "the disk is full");
  EXPECT_ERROR(group[1]->check(), ErrorCode::rank_failure, "the disk is full");
}

TEST(PlaceOnMachine, CountsThoseBeforeIt) {
  on_ranks(3, [](const std::shared_ptr<Communicator>& communicator) {
    EXPECT_EQ(distribute::place_on_machine(*communicator), communicator->rank());
  });
}

}  // namespace
}  // namespace tessera::testing
