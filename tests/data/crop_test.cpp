#include "tessera/data/crop.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tessera::data {
namespace {

TEST(CenterCrop, IsTheMiddleSquare) {
  EXPECT_EQ(center_crop(256, 320, 0.875), (Rectangle{.top = 16, .left = 48, .height = 224, .width = 224}));
  EXPECT_EQ(center_crop(3, 5, 1), (Rectangle{.top = 0, .left = 1, .height = 3, .width = 3}));
  EXPECT_EQ(center_crop(1, 1, 0.1), (Rectangle{.height = 1, .width = 1}));
}

TEST(CenterCrop, IsTheMiddleOfAnyShape) {
  EXPECT_EQ(center_crop(300, 400, 1, 2), (Rectangle{.top = 50, .left = 0, .height = 200, .width = 400}));
  EXPECT_EQ(center_crop(300, 400, 0.5, 2), (Rectangle{.top = 100, .left = 100, .height = 100, .width = 200}));
  EXPECT_EQ(center_crop(300, 400, 1, 0.5), (Rectangle{.top = 0, .left = 125, .height = 300, .width = 150}));
  EXPECT_EQ(center_crop(1, 1, 0.1, 3), (Rectangle{.height = 1, .width = 1}));
}

TEST(RandomCrop, DependsOnSeedEpochAndExampleAlone) {
  const auto crop = [](uint64_t seed, uint64_t epoch, int64_t example) {
    return random_crop({}, 375, 500, seed, epoch, example);
  };
  EXPECT_EQ(crop(1, 2, 3), crop(1, 2, 3));
  EXPECT_NE(crop(1, 2, 3), crop(2, 2, 3));
  EXPECT_NE(crop(1, 2, 3), crop(1, 3, 3));
  EXPECT_NE(crop(1, 2, 3), crop(1, 2, 4));
}

// A crop of share s fits a square where the logarithm of its ratio is at most -ln s from 0, which for s above
// 3/4 is a part of what is drawn: the mean of the shares that fit is 0.4778. Bounds are four deviations of
// the mean of 4000.
TEST(RandomCrop, IsDrawnAsItSays) {
  constexpr int kCount = 4000;
  double share = 0;
  double logarithm = 0;
  double left = 0;
  int mirrored = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const Rectangle crop = random_crop({}, 400, 400, 7, 0, i);
    ASSERT_GE(crop.top, 0);
    ASSERT_GE(crop.left, 0);
    ASSERT_LE(crop.top + crop.height, 400);
    ASSERT_LE(crop.left + crop.width, 400);
    const double ratio = static_cast<double>(crop.width) / static_cast<double>(crop.height);
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
    share += static_cast<double>(crop.height * crop.width) / 160000 / kCount;
    logarithm += std::log(ratio) / kCount;
    if (crop.width < 400)
      left += static_cast<double>(crop.left) / static_cast<double>(400 - crop.width) / kCount;
    mirrored += random_mirror(7, 0, i) ? 1 : 0;
  }
  EXPECT_NEAR(share, 0.4778, 0.016);
  EXPECT_NEAR(logarithm, 0, 0.011);
  EXPECT_NEAR(left, 0.5, 0.02);
  EXPECT_NEAR(mirrored, kCount * 0.5, 130);
}

TEST(RandomCrop, TakesTheMiddleWhereNothingFits) {
  // Forty times as wide as high: no share above 8 % fits.
  const Rectangle crop = random_crop({}, 10, 400, 1, 0, 0);
  EXPECT_EQ(crop, (Rectangle{.top = 0, .left = 193, .height = 10, .width = 13}));
  const Rectangle high = random_crop({}, 400, 10, 1, 0, 0);
  EXPECT_EQ(high, (Rectangle{.top = 193, .left = 0, .height = 13, .width = 10}));
  EXPECT_EQ(random_crop({}, 1, 1, 1, 0, 0), (Rectangle{.height = 1, .width = 1}));
}

}  // namespace
}  // namespace tessera::data
