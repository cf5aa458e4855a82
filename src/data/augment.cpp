#include "tessera/data/augment.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/random.h"

namespace tessera::data {
namespace {

constexpr double kErasedAspect = 0.3;

// The random numbers of one example, in a fixed order.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t epoch, int64_t example)
      : random_(seed ^ hash_name("augment", 7), epoch), next_(static_cast<uint64_t>(example) * kPerExample) {}

  double uniform() { return random_.uniform(next_++); }  // [0, 1)
  // Uniform in [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(uniform() * static_cast<double>(high - low + 1));
  }

 private:
  static constexpr uint64_t kPerExample = 16;  // at least as many as apply() takes
  Random random_;
  uint64_t next_;
};

Rectangle draw_rectangle(const AugmentOptions& options, const Shape& shape, Draws& draws) {
  const double share = options.erase_minimum_share +
                       draws.uniform() * (options.erase_maximum_share - options.erase_minimum_share);
  const double area = share * static_cast<double>(shape[0] * shape[1]);
  const double aspect = std::exp((2 * draws.uniform() - 1) * std::log(1 / kErasedAspect));  // height / width
  Rectangle result;
  result.height = std::clamp<int64_t>(std::llround(std::sqrt(area * aspect)), 1, shape[0]);
  result.width = std::clamp<int64_t>(std::llround(std::sqrt(area / aspect)), 1, shape[1]);
  result.top = draws.between(0, shape[0] - result.height);
  result.left = draws.between(0, shape[1] - result.width);
  return result;
}

}  // namespace

void flip_horizontally(std::span<uint8_t> image, const Shape& shape) {
  const auto width = static_cast<size_t>(shape[1]);
  const auto channels = static_cast<size_t>(shape[2]);
  for (uint8_t* row = image.data(); row < image.data() + image.size(); row += width * channels) {
    for (size_t left = 0, right = width - 1; left < right; ++left, --right)
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
  }
}

void shift(std::span<uint8_t> image, const Shape& shape, int64_t down, int64_t right) {
  const int64_t height = shape[0];
  const int64_t row_values = shape[1] * shape[2];
  const int64_t offset = std::clamp(right, -shape[1], shape[1]) * shape[2];  // values within a row
  const int64_t kept = row_values - std::abs(offset);
  for (int64_t i = 0; i < height; ++i) {
    const int64_t y = down > 0 ? height - 1 - i : i;  // so that no row is overwritten before it is read
    const int64_t source_y = y - down;
    uint8_t* target = image.data() + y * row_values;
    if (source_y < 0 || source_y >= height) {
      std::fill_n(target, row_values, uint8_t{0});
      continue;
    }
    const uint8_t* source = image.data() + source_y * row_values;
    if (offset >= 0) {
      std::copy_backward(source, source + kept, target + row_values);
      std::fill_n(target, offset, uint8_t{0});
    } else {
      std::copy(source - offset, source + row_values, target);
      std::fill_n(target + kept, -offset, uint8_t{0});
    }
  }
}

void erase(std::span<uint8_t> image, const Shape& shape, const Rectangle& area,
           std::span<const uint8_t> fill) {
  for (int64_t y = area.top; y < area.top + area.height; ++y) {
    uint8_t* pixel = image.data() + (y * shape[1] + area.left) * shape[2];
    for (int64_t x = 0; x < area.width; ++x) pixel = std::ranges::copy(fill, pixel).out;
  }
}

ChannelStatistics measure_channels(const Dataset& dataset, int64_t examples) {
  const Shape& shape = dataset.image_shape();
  const auto channels = static_cast<size_t>(shape[2]);
  std::vector<uint8_t> image(static_cast<size_t>(element_count(shape)));
  std::vector<double> sum(channels), square(channels);
  const int64_t count = std::min(examples, dataset.size());
  for (int64_t example = 0; example < count; ++example) {
    int32_t label = 0;
    dataset.read(example, image, label);
    for (size_t i = 0; i < image.size(); ++i) {
      const double value = image[i] / 255.0;
      sum[i % channels] += value;
      square[i % channels] += value * value;
    }
  }
  ChannelStatistics result;
  const double pixels = static_cast<double>(count * shape[0] * shape[1]);
  for (size_t c = 0; c < channels; ++c) {
    const double mean = sum[c] / pixels;
    result.mean.push_back(static_cast<float>(mean));
    result.deviation.push_back(
        static_cast<float>(std::sqrt(std::max(square[c] / pixels - mean * mean, 0.0))));
  }
  return result;
}

Augmenter::Augmenter(const AugmentOptions& options, const Shape& image_shape)
    : options_(options), shape_(image_shape) {
  const auto code = ErrorCode::invalid_argument;
  require(shape_.size() == 3, code, "images to augment must be [H, W, C], got {}", to_string(shape_));
  require(options_.crop_padding >= 0 && options_.crop_padding <= std::min(shape_[0], shape_[1]), code,
          "crop_padding is {}, expected 0 to the side of the image {}", options_.crop_padding,
          to_string(shape_));
  require(options_.erase_probability >= 0 && options_.erase_probability <= 1, code,
          "erase_probability is {}, expected 0 to 1", options_.erase_probability);
  require(options_.erase_minimum_share > 0 && options_.erase_minimum_share <= options_.erase_maximum_share &&
              options_.erase_maximum_share <= 1,
          code, "erase shares are {} and {}, expected 0 < minimum <= maximum <= 1",
          options_.erase_minimum_share, options_.erase_maximum_share);
  std::vector<uint8_t>& fill = options_.erase_fill;
  if (fill.size() == 1) fill.assign(static_cast<size_t>(shape_[2]), fill[0]);
  require(fill.size() == static_cast<size_t>(shape_[2]), code,
          "erase_fill has {} values, the images have {} channels", fill.size(), shape_[2]);
}

void Augmenter::apply(std::span<uint8_t> image, uint64_t seed, uint64_t epoch, int64_t example) const {
  Draws draws(seed, epoch, example);
  if (options_.crop_padding > 0) {
    const int64_t down = draws.between(-options_.crop_padding, options_.crop_padding);
    const int64_t right = draws.between(-options_.crop_padding, options_.crop_padding);
    shift(image, shape_, down, right);
  }
  if (options_.horizontal_flip && draws.uniform() < 0.5) flip_horizontally(image, shape_);
  if (options_.erase_probability > 0 && draws.uniform() < options_.erase_probability)
    erase(image, shape_, draw_rectangle(options_, shape_, draws), options_.erase_fill);
}

}  // namespace tessera::data
