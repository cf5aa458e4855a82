// Changes to images between reading and batching. All images are uint8 [H, W, C], channels-last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/shape.h"
#include "tessera/data/crop.h"
#include "tessera/data/dataset.h"

namespace tessera::data {

// Mirrors left and right.
void flip_horizontally(std::span<uint8_t> image, const Shape& shape);

// Moves the image by (down, right) pixels, either of which may be negative; what comes in from outside is 0.
// Equal to padding with zeros and cropping to the old size.
void shift(std::span<uint8_t> image, const Shape& shape, int64_t down, int64_t right);

// Sets each channel of a rectangle inside the image to its value of `fill`, [C].
void erase(std::span<uint8_t> image, const Shape& shape, const Rectangle& area,
           std::span<const uint8_t> fill);

struct ChannelStatistics {
  std::vector<float> mean;       // [C]
  std::vector<float> deviation;  // [C], of the whole population
};
// Of values in 0..1, over the first `examples` images, or all when there are fewer.
ChannelStatistics measure_channels(const Dataset& dataset, int64_t examples = 10'000);

// Applied in the order of the members. The defaults change nothing.
struct AugmentOptions {
  int64_t crop_padding = 0;      // pixels: zeros on every side, then a random crop of the old size
  bool horizontal_flip = false;  // of every second image on average
  // Random erasing (Zhong et al., 2020): the area's share of the image is uniform, the logarithm of its
  // height/width uniform between those of 0.3 and 1/0.3.
  double erase_probability = 0;
  double erase_minimum_share = 0.02;
  double erase_maximum_share = 1.0 / 3;
  std::vector<uint8_t> erase_fill = {0};  // of each channel, or one for all; the mean disturbs least
};

// AugmentOptions, checked, for images of one shape. What happens to an image depends only on (seed, epoch,
// example).
class Augmenter {
 public:
  // Throws Error(invalid_argument) naming the option that does not fit the shape or its own range.
  Augmenter(const AugmentOptions& options, const Shape& image_shape);

  // Whether it does anything to any image.
  bool changes() const {
    return options_.crop_padding > 0 || options_.horizontal_flip || options_.erase_probability > 0;
  }
  void apply(std::span<uint8_t> image, uint64_t seed, uint64_t epoch, int64_t example) const;

 private:
  AugmentOptions options_;
  Shape shape_;
};

}  // namespace tessera::data
