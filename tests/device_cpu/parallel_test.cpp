#include "device/cpu/runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tessera::cpu {
namespace {

using Blocks = std::vector<int64_t>;

// What each thread was given, in its order.
std::vector<Blocks> blocks_of_threads(int64_t threads, int64_t count, Order order) {
  std::vector<Blocks> given(static_cast<size_t>(threads));
  for_each_block(threads, count, order,
                 [&](int64_t thread, int64_t block) { given[static_cast<size_t>(thread)].push_back(block); });
  return given;
}

// The same for two threads, of which one is held up in a block until the other has done the rest.
std::vector<Blocks> blocks_beside(int64_t slow_block, int64_t count, Order order) {
  std::vector<Blocks> given(2);
  std::atomic<int64_t> arrived = 0;
  std::atomic<int64_t> done = 0;
  const auto wait_for = [](const std::atomic<int64_t>& number, int64_t wanted) {
    while (number < wanted) std::this_thread::yield();
  };
  for_each_block(2, count, order, [&](int64_t thread, int64_t block) {
    Blocks& mine = given[static_cast<size_t>(thread)];
    mine.push_back(block);
    // Nobody takes more before both have begun.
    if (mine.size() == 1) ++arrived;
    wait_for(arrived, 2);
    if (block == slow_block) wait_for(done, count - 1);
    ++done;
  });
  return given;
}

TEST(ForEachBlock, TakesEachBlockOnce) {
  for (const int64_t threads : {1, 2, 3, 5, 70}) {
    for (const int64_t count : {0, 1, 2, 7, 100}) {
      for (const Order order : {Order::forwards, Order::backwards}) {
        Blocks all;
        for (const auto& given : blocks_of_threads(threads, count, order))
          all.insert(all.end(), given.begin(), given.end());
        std::sort(all.begin(), all.end());
        Blocks expected;
        for (int64_t block = 0; block < count; ++block) expected.push_back(block);
        EXPECT_EQ(all, expected) << threads << " threads";
      }
    }
  }
}

TEST(ForEachBlock, OneThreadKeepsTheOrder) {
  EXPECT_EQ(blocks_of_threads(1, 4, Order::forwards)[0], (Blocks{0, 1, 2, 3}));
  EXPECT_EQ(blocks_of_threads(1, 4, Order::backwards)[0], (Blocks{3, 2, 1, 0}));
}

TEST(ForEachBlock, OthersTakeWhatOneLeaves) {
  const auto forwards = blocks_beside(0, 8, Order::forwards);
  EXPECT_EQ(forwards[0], (Blocks{0}));
  EXPECT_EQ(forwards[1], (Blocks{4, 5, 6, 7, 1, 2, 3}));
  const auto backwards = blocks_beside(7, 8, Order::backwards);
  EXPECT_EQ(backwards[1], (Blocks{7}));
  EXPECT_EQ(backwards[0], (Blocks{3, 2, 1, 0, 6, 5, 4}));
}

}  // namespace
}  // namespace tessera::cpu
