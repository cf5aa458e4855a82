// What only ranks in separate processes can do to each other: several of this program, which mpirun starts.
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/distribute/exchange.h"

#include "distribute/any_ranks.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    // Ranks that are processes take a launcher: the tests distribute.processes.* start these by mpirun.
    if (processes() == nullptr) GTEST_SKIP() << "no launcher has started this process";
  }
};

// It does nothing that counts as progress for longer than the heartbeat, and its thread goes on beating.
TEST_F(Processes, OneThatHangsIsNamed) {
  if (processes()->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_ERROR(processes()->barrier(), ErrorCode::rank_failure, "rank 1 (process ",
               ") hangs: it has given no sign");
  EXPECT_ERROR(processes()->check(), ErrorCode::rank_failure, "rank 1 (process ");
}

TEST_F(Processes, OneThatLeavesIsNamed) {
  const bool is_last = processes()->rank() == processes()->size() - 1;
  processes()->barrier();
  if (is_last) return;
  const std::string complaint = fmt::format("rank {} has left", processes()->size() - 1);
  EXPECT_ERROR(processes()->barrier(), ErrorCode::rank_failure, complaint);
}

TEST_F(Processes, TheyTellEachOtherTexts) {
  const std::string own(static_cast<size_t>(processes()->rank()) * 1000, 'x');
  const std::vector<std::string> texts = distribute::gather_texts(*processes(), own);
  for (size_t rank = 0; rank < texts.size(); ++rank) EXPECT_EQ(texts[rank], std::string(rank * 1000, 'x'));
}

}  // namespace
}  // namespace tessera::testing
