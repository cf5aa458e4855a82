// Which part of an image is taken.
#pragma once

#include <cstdint>

#include "tessera/base/shape.h"

namespace tessera::data {

struct Rectangle {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const Rectangle&) const = default;
};

// Of the largest rectangle in the middle with that width to height, a square unless said, `share` along each
// side: 0.875 is what is left by a resize of the shorter side to 256 and a crop of 224. At least one pixel.
Rectangle center_crop(int64_t height, int64_t width, double share, double ratio = 1);

// Random-resized crop (Szegedy et al., "Going deeper with convolutions", 2015), drawn as torchvision's
// RandomResizedCrop: the share of the area is uniform, the logarithm of width/height too; after ten draws
// that do not fit, the middle with the nearest ratio that is allowed.
struct RandomCropOptions {
  double minimum_share = 0.08;
  double maximum_share = 1;
  double minimum_ratio = 3.0 / 4;
  double maximum_ratio = 4.0 / 3;
};
// Throws Error(invalid_argument) naming the option that is out of range.
void check_random_crop(const RandomCropOptions& options);
// Depends only on the arguments.
Rectangle random_crop(const RandomCropOptions& options, int64_t height, int64_t width, uint64_t seed,
                      uint64_t epoch, int64_t example);
// Whether the example is mirrored, which is as likely as not.
bool random_mirror(uint64_t seed, uint64_t epoch, int64_t example);

}  // namespace tessera::data
