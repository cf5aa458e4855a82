#include "tessera/data/augment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera::data {
namespace {

using Image = std::vector<uint8_t>;

Image counting_image(const Shape& shape) {
  Image image(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(i % 255 + 1);
  return image;
}

TEST(Augment, FlipMirrorsPixelsAndKeepsChannels) {
  Image image = {1, 2, 3, 4, 5, 6, /* next row */ 7, 8, 9, 10, 11, 12};
  flip_horizontally(image, {2, 3, 2});
  EXPECT_EQ(image, (Image{5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8}));
  flip_horizontally(image, {2, 3, 2});
  EXPECT_EQ(image, counting_image({2, 3, 2}));
}

TEST(Augment, ShiftIsPaddingAndCropping) {
  const Shape shape = {4, 3, 2};
  const Image original = counting_image(shape);
  for (int64_t down = -5; down <= 5; ++down) {
    for (int64_t right = -4; right <= 4; ++right) {
      Image moved = original;
      shift(moved, shape, down, right);
      for (int64_t y = 0; y < 4; ++y) {
        for (int64_t x = 0; x < 3; ++x) {
          for (int64_t c = 0; c < 2; ++c) {
            const int64_t from_y = y - down, from_x = x - right;
            const bool inside = from_y >= 0 && from_y < 4 && from_x >= 0 && from_x < 3;
            const int expected = inside ? original[static_cast<size_t>((from_y * 3 + from_x) * 2 + c)] : 0;
            ASSERT_EQ(moved[static_cast<size_t>((y * 3 + x) * 2 + c)], expected) << down << " " << right;
          }
        }
      }
    }
  }
}

TEST(Augment, EraseSetsOneRectangle) {
  Image image = counting_image({3, 3, 1});
  erase(image, {3, 3, 1}, {.top = 1, .left = 0, .height = 2, .width = 2}, Image{77});
  EXPECT_EQ(image, (Image{1, 2, 3, 77, 77, 6, 77, 77, 9}));
  Image colors = counting_image({1, 3, 2});
  erase(colors, {1, 3, 2}, {.top = 0, .left = 1, .height = 1, .width = 2}, Image{70, 80});
  EXPECT_EQ(colors, (Image{1, 2, 70, 80, 70, 80}));
}

TEST(Augment, MeasuredStatisticsNormalizeTheSet) {
  const ClassificationDataset dataset(Tensor::from<uint8_t>({2, 1, 1, 2}, {0, 255, 51, 255}),
                                      Tensor::from<uint8_t>({2}, {0, 1}));
  const ChannelStatistics statistics = measure_channels(dataset);
  EXPECT_FLOAT_EQ(statistics.mean[0], 0.1f);
  EXPECT_FLOAT_EQ(statistics.deviation[0], 0.1f);
  EXPECT_FLOAT_EQ(statistics.mean[1], 1.0f);
  EXPECT_FLOAT_EQ(statistics.deviation[1], 0.0f);
}

TEST(Augmenter, DependsOnSeedEpochAndExampleOnly) {
  const Shape shape = {8, 8, 3};
  const AugmentOptions options{.crop_padding = 2, .horizontal_flip = true, .erase_probability = 0.5};
  const Augmenter augmenter(options, shape);
  const auto result = [&](uint64_t seed, uint64_t epoch, int64_t example) {
    Image image = counting_image(shape);
    augmenter.apply(image, seed, epoch, example);
    return image;
  };
  EXPECT_EQ(result(1, 2, 3), result(1, 2, 3));
  std::set<Image> distinct;
  for (int64_t i = 0; i < 50; ++i) {
    distinct.insert(result(1, 0, i));
    distinct.insert(result(1, 1, i));
    distinct.insert(result(2, 0, i));
  }
  EXPECT_GT(distinct.size(), 60u);  // 25 shifts, two mirrors, some erased
}

TEST(Augmenter, EveryShiftAndBothMirrorsAreEquallyLikely) {
  const Shape shape = {5, 5, 1};
  const Augmenter augmenter({.crop_padding = 1, .horizontal_flip = true}, shape);
  std::map<Image, int> counts;
  for (int64_t i = 0; i < 18'000; ++i) {
    Image image = counting_image(shape);
    augmenter.apply(image, 7, 0, i);
    ++counts[image];
  }
  ASSERT_EQ(counts.size(), 18u);
  for (const auto& [image, count] : counts) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

TEST(Augmenter, ErasedRectanglesStayInsideAndInRange) {
  const Shape shape = {20, 30, 1};
  const Augmenter augmenter({.erase_probability = 1, .erase_minimum_share = 0.1, .erase_maximum_share = 0.3},
                            shape);
  for (int64_t i = 0; i < 2000; ++i) {
    Image image = counting_image(shape);
    augmenter.apply(image, 3, 0, i);
    const auto erased = static_cast<double>(std::count(image.begin(), image.end(), 0)) / 600;
    EXPECT_GT(erased, 0.05);
    EXPECT_LT(erased, 0.35);
  }
}

TEST(Augmenter, ErasesWithOneValueForAllChannelsOrWithOneForEach) {
  const Shape shape = {4, 4, 2};
  const AugmentOptions options{.erase_probability = 1, .erase_minimum_share = 1, .erase_maximum_share = 1};
  for (const Image& fill : {Image{9}, Image{90, 200}}) {
    AugmentOptions with_fill = options;
    with_fill.erase_fill = fill;
    Image image = counting_image(shape);
    Augmenter(with_fill, shape).apply(image, 1, 2, 3);
    size_t erased = 0;
    for (size_t i = 0; i < image.size(); ++i)
      erased += image[i] == fill[i % fill.size()] && image[i] != counting_image(shape)[i] ? 1 : 0;
    EXPECT_GT(erased, image.size() / 3);  // as much of the whole as its shape allows
  }
}

TEST(Augmenter, WithoutOptionsNothingChanges) {
  Image image = counting_image({4, 4, 1});
  Augmenter({}, {4, 4, 1}).apply(image, 1, 2, 3);
  EXPECT_EQ(image, counting_image({4, 4, 1}));
}

TEST(Augmenter, RefusalsNameTheOption) {
  const auto code = ErrorCode::invalid_argument;
  const Shape shape = {4, 4, 3};
  EXPECT_ERROR(Augmenter({}, {4, 4}), code, "[4, 4]");
  EXPECT_ERROR(Augmenter({.crop_padding = -1}, shape), code, "crop_padding is -1");
  EXPECT_ERROR(Augmenter({.crop_padding = 5}, shape), code, "crop_padding is 5", "[4, 4, 3]");
  EXPECT_ERROR(Augmenter({.erase_probability = 1.5}, shape), code, "erase_probability is 1.5");
  EXPECT_ERROR(Augmenter({.erase_probability = std::numeric_limits<double>::quiet_NaN()}, shape), code,
               "nan");
  EXPECT_ERROR(Augmenter({.erase_minimum_share = 0.5}, shape), code, "erase shares");
  EXPECT_ERROR(Augmenter({.erase_fill = {1, 2}}, shape), code, "erase_fill has 2", "3 channels");
}

}  // namespace
}  // namespace tessera::data
