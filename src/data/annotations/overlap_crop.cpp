#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/data/geometry.h"

namespace tessera::data {
namespace {

constexpr int kOverlaps = 10;
constexpr int kTries = 40;
constexpr uint64_t kPerTry = 4;
constexpr uint64_t kPerExample = kOverlaps * (1 + kTries * kPerTry);

BoundingBox box_of(const Rectangle& part) {
  return {.left = static_cast<float>(part.left),
          .top = static_cast<float>(part.top),
          .right = static_cast<float>(part.left + part.width),
          .bottom = static_cast<float>(part.top + part.height)};
}

// The largest overlap with a box whose center is inside; below 0 where there is none.
double best_overlap(const Rectangle& part, std::span<const BoundingBox> boxes) {
  const BoundingBox cut = box_of(part);
  double best = -1;
  for (const BoundingBox& box : boxes) {
    const float x = (box.left + box.right) / 2;
    const float y = (box.top + box.bottom) / 2;
    if (x > cut.left && x < cut.right && y > cut.top && y < cut.bottom)
      best = std::max(best, intersection_over_union(cut, box));
  }
  return best;
}

}  // namespace

void check_overlap_crop(const OverlapCropOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(!options.overlaps.empty() && *std::ranges::min_element(options.overlaps) >= 0, code,
          "an overlap crop has {} overlaps, expected one or more of 0 and above", options.overlaps.size());
  require(
      options.minimum_side > 0 && options.minimum_side <= options.maximum_side && options.maximum_side <= 1,
      code, "an overlap crop's sides are from {} to {}, expected 0 < minimum <= maximum <= 1",
      options.minimum_side, options.maximum_side);
  require(options.minimum_ratio > 0 && options.minimum_ratio <= options.maximum_ratio &&
              std::isfinite(options.maximum_ratio),
          code, "an overlap crop's width/height is from {} to {}, expected 0 < minimum <= maximum",
          options.minimum_ratio, options.maximum_ratio);
}

Rectangle random_overlap_crop(const OverlapCropOptions& options, int64_t height, int64_t width,
                              std::span<const BoundingBox> boxes, uint64_t seed, uint64_t epoch,
                              int64_t example) {
  const Random random(seed ^ hash_name("overlap crop", 12), epoch);
  const uint64_t first = static_cast<uint64_t>(example) * kPerExample;
  for (uint64_t round = 0; round < kOverlaps; ++round) {
    uint64_t next = first + round * (1 + kTries * kPerTry);
    const double wanted = options.overlaps[random.below(next++, options.overlaps.size())];
    if (wanted >= 1) break;
    for (int i = 0; i < kTries; ++i, next += kPerTry) {
      const auto draw = [&](uint64_t number, double extent) {
        return static_cast<int64_t>(static_cast<double>(random.uniform(next + number)) * extent);
      };
      const auto side = [&](uint64_t number, int64_t extent) {
        const double share = options.minimum_side + static_cast<double>(random.uniform(next + number)) *
                                                        (options.maximum_side - options.minimum_side);
        return static_cast<int64_t>(share * static_cast<double>(extent));
      };
      Rectangle part{.height = side(1, height), .width = side(0, width)};
      if (part.height < 1 || part.width < 1) continue;
      const double ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
      if (ratio < options.minimum_ratio || ratio > options.maximum_ratio) continue;
      part.left = draw(2, static_cast<double>(width - part.width));
      part.top = draw(3, static_cast<double>(height - part.height));
      const double overlap = best_overlap(part, boxes);
      if (overlap >= 0 && overlap >= wanted) return part;
    }
  }
  return {.height = height, .width = width};
}

}  // namespace tessera::data
