// Augmentation of images: operators at the head of a training graph, one definition for all devices.
//
// Images are [batch, H, W, C] in gray levels, 0 to 255; results are fp32. What is drawn is drawn by the graph
// from its counter of random numbers, for the rows of all ranks: it depends on (seed, step, row) alone.
#pragma once

#include <vector>

#include "tessera/nn/context.h"
#include "tessera/nn/image_operations.h"

namespace tessera::nn {

// Of each image, fp32 [batch]; null leaves it as it is.
struct ColorFactors {
  Value* brightness = nullptr;  // 1: unchanged, 0: black
  Value* contrast = nullptr;    // 1: unchanged, 0: the gray of the image's mean
  Value* saturation = nullptr;  // 1: unchanged, 0: gray
  Value* hue = nullptr;         // in turns; 0: unchanged, 1/3: red becomes green
};
// One matrix and offset for each image, cut to 0..255 at the end. Brightness, contrast and saturation blend
// with black, with the mean of the gray image and with the gray image, as Pillow's ImageEnhance; gray is
// 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601). Hue turns the plane of I and Q of NTSC's YIQ (FCC 1953), not
// HSV's: that is linear, and keeps the luma. The four commute where nothing is cut. Images of other than
// three channels have brightness and contrast only, around the mean of all channels. Throws
// Error(invalid_argument) where they are asked for more.
Value* adjust_color(Value* images, const ColorFactors& factors);

// Of each image, fp32 [batch]: rows top <= y < bottom, columns left <= x < right.
struct Rectangles {
  Value* top;
  Value* left;
  Value* bottom;
  Value* right;
};
// boolean [batch, H, W, 1] of such images.
Value* inside(const Rectangles& areas, const Value* images);

struct AugmentationOptions {
  RandomAffineOptions affine = {};       // before all others
  RandAugmentOptions rand_augment = {};  // then this
  // Numbers as of torchvision's ColorJitter: factors uniform in [max(0, 1 - x), 1 + x], hues in [-x, x] turns
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;                // at most 1/2
  double color_probability = 1;  // of the four together
  double grayscale = 0;          // probability; whatever the saturation was
  // Random erasing (Zhong et al., 2020): the share of the area is uniform, the logarithm of height/width
  // uniform between those of 0.3 and 1/0.3.
  double erasing = 0;  // probability
  double erasing_minimum_share = 0.02;
  double erasing_maximum_share = 1.0 / 3;
  std::vector<float> erasing_fill = {0};  // gray levels, of each channel or one for all
  // The share of its own image that a row keeps is of Beta(x, x); 0: none. Where both are asked for, each
  // takes half of the rows.
  double mixup = 0;            // at most 10; mixup (Zhang et al., 2018)
  double cutmix = 0;           // at most 10; CutMix (Yun et al., 2019)
  double mix_probability = 1;  // of a row

  bool changes_images() const;  // other than by mixing them
  bool mixes() const { return (mixup > 0 || cutmix > 0) && mix_probability > 0; }
};
// Throws Error(invalid_argument) naming the option that is out of range, or does not fit the channels.
void check_augmentation(const AugmentationOptions& options, int64_t channels);

// An affine map, RandAugment, color, then erasing.
Value* augment_images(Context& context, Value* images, const AugmentationOptions& options);

// Rows 2k and 2k+1 of a batch are mixed with each other, each by a share of its own, so that no image moves
// between ranks. The last row of an odd batch stays alone, and so do two of which one has the label -1.
struct Mixed {
  Value* images;         // fp32
  Value* partner_label;  // int32 [batch]
  Value* share;          // fp32 [batch], of the row's own label
};
Mixed mix_images(Context& context, Value* images, Value* labels, const AugmentationOptions& options);

// The same by given numbers. `pasted` replaces the rectangle by the partner's; elsewhere `share` of the own
// level and the rest of the partner's are added.
Value* mix_with_partner(Value* images, Value* partner, Value* share, const Rectangles* pasted);
Value* partner_rows(Value* rows);  // of the first axis: 1, 0, 3, 2, ...

// Quantiles of Beta(concentration, concentration) at 0, 1/count, ..., 1: what shares are drawn by, linear
// between.
std::vector<float> beta_quantiles(double concentration, int64_t count);

}  // namespace tessera::nn
