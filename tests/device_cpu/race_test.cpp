// The thread sanitizer sees what it is there for, and does not see what is none. Its other tests, which are
// all that run on several threads, mean nothing without these.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <omp.h>

#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

#if defined(__SANITIZE_THREAD__)

constexpr int kReported = 66;  // how a process ends of which the sanitizer has reported something

class RaceDeathTest : public ::testing::Test {
 protected:
  // Threads of OpenMP do not outlive a fork: the child starts afresh.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

[[noreturn]] void add_in_parts_and_exit() {
  int64_t sum = 0;
  for_each_part(4, 4, [&](int64_t part, int64_t, int64_t) { sum += part; });
  std::exit(sum < 0 ? 1 : 0);
}

// Each thread gets a block, since none goes on before all have one.
[[noreturn]] void add_in_blocks_and_exit() {
  int64_t sum = 0;
  std::atomic<int> begun = 0;
  for_each_block(4, 4, Order::forwards, [&](int64_t, int64_t block) {
    begun.fetch_add(1, std::memory_order_relaxed);
    while (begun.load(std::memory_order_relaxed) < 4) std::this_thread::yield();
    sum += block;
  });
  std::exit(sum < 0 ? 1 : 0);
}

TEST_F(RaceDeathTest, OfTwoPartsIsReported) {
  EXPECT_EXIT(add_in_parts_and_exit(), ::testing::ExitedWithCode(kReported), "data race");
}

TEST_F(RaceDeathTest, OfTwoBlocksIsReported) {
  EXPECT_EXIT(add_in_blocks_and_exit(), ::testing::ExitedWithCode(kReported), "data race");
}

#endif

// What one region writes, the caller and the next region read.
TEST(Region, ComesAfterWhatWasBeforeAndBeforeWhatFollows) {
  for (int round = 0; round < 100; ++round) {
    std::vector<int64_t> numbers(64, round);
    for_each_part(4, 64, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) numbers[static_cast<size_t>(i)] += i;
    });
    for (int64_t& number : numbers) ++number;
    // Other threads read than wrote.
    std::vector<int64_t> sums(4, 0);
    for_each_part(4, 64, [&](int64_t part, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sums[static_cast<size_t>(part)] += numbers[static_cast<size_t>(63 - i)];
    });
    int64_t sum = 0;
    for (const int64_t part : sums) sum += part;
    EXPECT_EQ(sum, 64 * (round + 1) + 63 * 64 / 2);
  }
}

}  // namespace
}  // namespace tessera::cpu
