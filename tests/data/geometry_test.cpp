#include "tessera/data/geometry.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/data/run_length_mask.h"

#include "support/expect_error.h"

namespace tessera::data {
namespace {

constexpr int64_t kHeight = 40;
constexpr int64_t kWidth = 60;

// A box of whole pixels as a mask, so that what becomes of its pixels tells what becomes of the box.
RunLengthMask mask_of(const BoundingBox& box) {
  RunLengthMask mask{.height = kHeight, .width = kWidth};
  uint32_t run = 0;
  bool inside = false;
  for (int64_t x = 0; x < kWidth; ++x) {
    for (int64_t y = 0; y < kHeight; ++y, ++run) {
      const auto column = static_cast<float>(x);
      const auto row = static_cast<float>(y);
      const bool is_in = column >= box.left && column < box.right && row >= box.top && row < box.bottom;
      if (is_in == inside) continue;
      mask.runs.push_back(run);
      run = 0;
      inside = is_in;
    }
  }
  mask.runs.push_back(run);
  check_runs(mask, "test");
  return mask;
}

// The smallest box around the pixels that are 1.
BoundingBox box_around(const std::vector<uint8_t>& pixels, const View& view) {
  int64_t left = view.width, right = 0, top = view.height, bottom = 0;
  for (int64_t i = 0; i < std::ssize(pixels); ++i) {
    if (pixels[static_cast<size_t>(i)] == 0) continue;
    left = std::min(left, i % view.width), right = std::max(right, i % view.width + 1);
    top = std::min(top, i / view.width), bottom = std::max(bottom, i / view.width + 1);
  }
  if (right == 0) return {};
  return {static_cast<float>(left), static_cast<float>(top), static_cast<float>(right),
          static_cast<float>(bottom)};
}

// Parts of all kinds, enlarged and made smaller, every second one mirrored.
std::vector<View> random_views() {
  const Random random(3);
  std::vector<View> views;
  for (uint64_t i = 0; i < 200; ++i) {
    const auto draw = [&](uint64_t number, int64_t bound) {
      return static_cast<int64_t>(random.below(8 * i + number, static_cast<uint64_t>(bound)));
    };
    View view{.part = {.height = 1 + draw(0, kHeight), .width = 1 + draw(1, kWidth)},
              .height = 1 + draw(2, 90),
              .width = 1 + draw(3, 90),
              .mirrored = i % 2 == 1};
    view.part.top = draw(4, kHeight - view.part.height + 1);
    view.part.left = draw(5, kWidth - view.part.width + 1);
    views.push_back(view);
  }
  return views;
}

// The pixels whose middles lie in a box reach at most half a pixel less far than it, at each of its sides.
TEST(Seen, BoxesLieWhereTheirPixelsDo) {
  const std::vector<BoundingBox> boxes{
      {5, 6, 20, 18}, {0, 0, kWidth, kHeight}, {33, 2, 59, 9}, {7, 30, 9, 40}};
  int compared = 0;
  for (const View& view : random_views()) {
    for (const BoundingBox& box : boxes) {
      std::vector<uint8_t> pixels(static_cast<size_t>(view.height * view.width));
      draw_mask(mask_of(box), view, pixels);
      const BoundingBox drawn = box_around(pixels, view);
      const auto found = seen(box, view, {.by_center = false});
      if (area(drawn) == 0) {
        // Nothing is drawn of what is thinner than a pixel.
        if (!found.has_value()) continue;
        EXPECT_LE(std::min(found->right - found->left, found->bottom - found->top), 1);
        continue;
      }
      ASSERT_TRUE(found.has_value());
      EXPECT_NEAR(found->left, drawn.left, 0.5);
      EXPECT_NEAR(found->top, drawn.top, 0.5);
      EXPECT_NEAR(found->right, drawn.right, 0.5);
      EXPECT_NEAR(found->bottom, drawn.bottom, 0.5);
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(Seen, BoxesAreCutAndDropped) {
  const View view{.part = {.top = 10, .left = 20, .height = 20, .width = 30}, .height = 40, .width = 30};
  EXPECT_EQ(seen({22, 12, 30, 20}, view, {}), (BoundingBox{2, 4, 10, 20}));
  EXPECT_EQ(seen({16, 4, 30, 20}, view, {}), (BoundingBox{0, 0, 10, 20}));  // cut, its center inside
  EXPECT_EQ(seen({8, 12, 30, 20}, view, {}), std::nullopt);                 // its center outside
  EXPECT_EQ(seen({8, 12, 30, 20}, view, {.by_center = false}), (BoundingBox{0, 4, 10, 20}));
  EXPECT_EQ(seen({10, 12, 30, 20}, view, {.by_center = false, .minimum_visible = 0.5}),
            (BoundingBox{0, 4, 10, 20}));  // half of it is left
  EXPECT_EQ(seen({9, 12, 30, 20}, view, {.by_center = false, .minimum_visible = 0.5}), std::nullopt);
  EXPECT_EQ(seen({0, 0, 20, 40}, view, {.by_center = false}), std::nullopt);  // beside it
  View mirrored = view;
  mirrored.mirrored = true;
  EXPECT_EQ(seen({22, 12, 30, 20}, mirrored, {}), (BoundingBox{20, 4, 28, 20}));
  EXPECT_ERROR(check_visibility({.minimum_visible = 1.5}), ErrorCode::invalid_argument, "1.5");
}

TEST(Seen, KeypointsMoveWithTheirPixels) {
  for (const View& view : random_views()) {
    const Keypoint middle{.x = 24.5F, .y = 17.5F, .visible = true};
    const Keypoint found = seen(middle, view);
    const Rectangle& part = view.part;
    const bool inside =
        part.left <= 24 && 24 < part.left + part.width && part.top <= 17 && 17 < part.top + part.height;
    ASSERT_EQ(found.visible, inside);
    if (!inside) {
      EXPECT_EQ(found, Keypoint{});
      continue;
    }
    // The pixel around the point, as a box, has the point in its middle.
    const auto box = seen({24, 17, 25, 18}, view, {});
    EXPECT_NEAR(found.x, (box->left + box->right) / 2, 1e-4);
    EXPECT_NEAR(found.y, (box->top + box->bottom) / 2, 1e-4);
  }
}

TEST(Seen, MirroredKeypointsExchangeSides) {
  const std::vector<Keypoint> points{{10, 5, true}, {20, 6, true}, {30, 7, false}};
  const std::vector<int64_t> order{1, 0, 2};
  View view = whole_view(kHeight, kWidth, kHeight, kWidth);
  EXPECT_EQ(seen(points, view, order), (std::vector<Keypoint>{{10, 5, true}, {20, 6, true}, {}}));
  view.mirrored = true;
  EXPECT_EQ(seen(points, view, order), (std::vector<Keypoint>{{40, 6, true}, {50, 5, true}, {}}));
  EXPECT_ERROR(seen(points, view, std::vector<int64_t>{0, 1}), ErrorCode::invalid_argument, "3 points");
  EXPECT_ERROR(seen(points, view, std::vector<int64_t>{0, 1, 3}), ErrorCode::invalid_argument, "no point 3");
}

TEST(IntersectionOverUnion, IsThatOfPixels) {
  EXPECT_EQ(intersection_over_union({0, 0, 10, 10}, {0, 0, 10, 10}), 1);
  EXPECT_EQ(intersection_over_union({0, 0, 10, 10}, {5, 0, 15, 10}), 50.0 / 150);
  EXPECT_EQ(intersection_over_union({0, 0, 10, 10}, {10, 0, 15, 10}), 0);
  EXPECT_EQ(intersection_over_union({}, {}), 0);
}

TEST(OverlapCrop, HasTheOverlapThatIsAskedFor) {
  const std::vector<BoundingBox> boxes{{5, 6, 25, 28}, {33, 2, 59, 19}};
  for (const double overlap : {0.0, 0.3, 0.7}) {
    const OverlapCropOptions options{.overlaps = {overlap}};
    int whole = 0;
    for (int64_t example = 0; example < 300; ++example) {
      const Rectangle part = random_overlap_crop(options, kHeight, kWidth, boxes, 1, 2, example);
      EXPECT_EQ(part, random_overlap_crop(options, kHeight, kWidth, boxes, 1, 2, example));
      ASSERT_TRUE(part.top >= 0 && part.left >= 0 && part.top + part.height <= kHeight &&
                  part.left + part.width <= kWidth);
      whole += part.height == kHeight && part.width == kWidth ? 1 : 0;
      if (part.height == kHeight && part.width == kWidth) continue;
      EXPECT_GE(part.height, 0.3 * kHeight - 1);
      EXPECT_GE(part.width, 0.3 * kWidth - 1);
      EXPECT_LE(part.width, 2 * part.height);
      EXPECT_GE(2 * part.width, part.height);
      const BoundingBox cut{static_cast<float>(part.left), static_cast<float>(part.top),
                            static_cast<float>(part.left + part.width),
                            static_cast<float>(part.top + part.height)};
      double best = -1;
      for (const BoundingBox& box : boxes) {
        const View view{.part = part, .height = part.height, .width = part.width};
        if (seen(box, view, {}).has_value()) best = std::max(best, intersection_over_union(box, cut));
      }
      EXPECT_GE(best, overlap) << example;
    }
    EXPECT_LT(whole, 100) << overlap;
  }
}

TEST(OverlapCrop, LeavesWholeWhatHasNoSuchPart) {
  const Rectangle whole{.height = kHeight, .width = kWidth};
  const std::vector<BoundingBox> boxes{{5, 6, 25, 28}};
  EXPECT_EQ(random_overlap_crop({.overlaps = {1}}, kHeight, kWidth, boxes, 1, 2, 3), whole);
  EXPECT_EQ(random_overlap_crop({}, kHeight, kWidth, {}, 1, 2, 3), whole);
  EXPECT_EQ(random_overlap_crop({}, 1, 1, boxes, 1, 2, 3), (Rectangle{.height = 1, .width = 1}));
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(check_overlap_crop({.overlaps = {}}), code, "0 overlaps");
  EXPECT_ERROR(check_overlap_crop({.minimum_side = 0}), code, "sides are from 0");
  EXPECT_ERROR(check_overlap_crop({.minimum_ratio = 3}), code, "from 3 to 2");
}

}  // namespace
}  // namespace tessera::data
