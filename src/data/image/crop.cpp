#include "tessera/data/crop.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/random.h"

namespace tessera::data {
namespace {

constexpr int kTries = 10;
constexpr uint64_t kPerExample = 64;  // at least 4 for each try, and one to mirror
constexpr uint64_t kMirrorDraw = kPerExample - 1;

Random crop_random(uint64_t seed, uint64_t epoch) {
  return Random(seed ^ hash_name("crop", 4), epoch);
}

// The middle, as large as the ratios allow.
Rectangle fitting_middle(const RandomCropOptions& options, int64_t height, int64_t width) {
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  Rectangle crop{.height = height, .width = width};
  if (ratio < options.minimum_ratio)
    crop.height = std::llround(static_cast<double>(width) / options.minimum_ratio);
  if (ratio > options.maximum_ratio)
    crop.width = std::llround(static_cast<double>(height) * options.maximum_ratio);
  crop.height = std::clamp<int64_t>(crop.height, 1, height);
  crop.width = std::clamp<int64_t>(crop.width, 1, width);
  crop.top = (height - crop.height) / 2;
  crop.left = (width - crop.width) / 2;
  return crop;
}

}  // namespace

Rectangle center_crop(int64_t height, int64_t width, double share, double ratio) {
  const double most = std::min(static_cast<double>(width), static_cast<double>(height) * ratio);
  const auto kept = [&](double side, int64_t whole) {
    return std::clamp<int64_t>(std::llround(share * side), 1, std::max<int64_t>(whole, 1));
  };
  const int64_t tall = kept(most / ratio, height);
  const int64_t wide = kept(most, width);
  return {.top = (height - tall) / 2, .left = (width - wide) / 2, .height = tall, .width = wide};
}

void check_random_crop(const RandomCropOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.minimum_share > 0 && options.minimum_share <= options.maximum_share &&
              options.maximum_share <= 1,
          code, "a random crop takes from {} to {} of the area, expected 0 < minimum <= maximum <= 1",
          options.minimum_share, options.maximum_share);
  require(options.minimum_ratio > 0 && options.minimum_ratio <= options.maximum_ratio &&
              std::isfinite(options.maximum_ratio),
          code, "a random crop's width/height is from {} to {}, expected 0 < minimum <= maximum",
          options.minimum_ratio, options.maximum_ratio);
}

Rectangle random_crop(const RandomCropOptions& options, int64_t height, int64_t width, uint64_t seed,
                      uint64_t epoch, int64_t example) {
  const Random random = crop_random(seed, epoch);
  uint64_t next = static_cast<uint64_t>(example) * kPerExample;
  const auto uniform = [&] { return static_cast<double>(random.uniform(next++)); };
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (int i = 0; i < kTries; ++i) {
    const double share = options.minimum_share + uniform() * (options.maximum_share - options.minimum_share);
    const double ratio =
        options.minimum_ratio * std::pow(options.maximum_ratio / options.minimum_ratio, uniform());
    Rectangle crop{.height = std::llround(std::sqrt(share * area / ratio)),
                   .width = std::llround(std::sqrt(share * area * ratio))};
    const auto place = [](double draw, int64_t room) {
      return static_cast<int64_t>(draw * static_cast<double>(room + 1));
    };
    const double down = uniform();
    const double right = uniform();
    if (crop.height < 1 || crop.width < 1 || crop.height > height || crop.width > width) continue;
    crop.top = place(down, height - crop.height);
    crop.left = place(right, width - crop.width);
    return crop;
  }
  return fitting_middle(options, height, width);
}

bool random_mirror(uint64_t seed, uint64_t epoch, int64_t example) {
  return crop_random(seed, epoch).uniform(static_cast<uint64_t>(example) * kPerExample + kMirrorDraw) < 0.5F;
}

}  // namespace tessera::data
