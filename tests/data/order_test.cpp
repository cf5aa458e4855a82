#include "tessera/data/order.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace tessera::data {
namespace {

TEST(Order, IsAPermutation) {
  for (int64_t size : {0, 1, 2, 3, 10, 1000, 65537}) {
    std::vector<int64_t> order = shuffled_order(size, 5, 9);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, sequential_order(size));
  }
}

TEST(Order, DependsOnSeedAndEpoch) {
  EXPECT_EQ(shuffled_order(100, 1, 2), shuffled_order(100, 1, 2));
  EXPECT_NE(shuffled_order(100, 1, 2), shuffled_order(100, 1, 3));
  EXPECT_NE(shuffled_order(100, 1, 2), shuffled_order(100, 2, 2));
  EXPECT_NE(shuffled_order(100, 1, 2), shuffled_order(100, 2, 1));
}

// Checkpoints written by one version resume under the next only as long as this holds.
TEST(Order, IsTheSameOnEveryMachineAndVersion) {
  EXPECT_EQ(shuffled_order(8, 0, 0), (std::vector<int64_t>{6, 0, 2, 7, 4, 5, 3, 1}));
}

TEST(Order, EveryPermutationIsEquallyLikely) {
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t epoch = 0; epoch < 24'000; ++epoch) ++counts[shuffled_order(4, 11, epoch)];
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom, one in a thousand
}

}  // namespace
}  // namespace tessera::data
