#include "tessera/base/rounding.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Rounding, HoldsForTheLargestNumbers) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(quotient_rounded_up(kLargest, int64_t{1} << 46), int64_t{1} << 17);
  EXPECT_EQ(quotient_rounded_up(kLargest, kLargest), 1);
}

TEST(Rounding, GoesUpToTheNextMultiple) {
  EXPECT_EQ(round_up(0, 64), 0);
  EXPECT_EQ(round_up(1, 64), 64);
  EXPECT_EQ(round_up(64, 64), 64);
  EXPECT_EQ(round_up(65, 64), 128);
  EXPECT_EQ(quotient_rounded_up(0, 7), 0);
  EXPECT_EQ(quotient_rounded_up(7, 7), 1);
  EXPECT_EQ(quotient_rounded_up(8, 7), 2);
}

}  // namespace
}  // namespace tessera
