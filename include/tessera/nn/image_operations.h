// What RandAugment does to images: each operation by itself, as Pillow has it, and random ones in turn.
//
// Images are [batch, H, W, C] in gray levels, 0 to 255, in whole numbers of any type; results are fp32 in
// whole numbers. Parameters are of each image, [batch].
#pragma once

#include <array>
#include <vector>

#include "tessera/nn/context.h"

namespace tessera::nn {

// Where a pixel of the result comes from: column a x + b y + c and row d x + e y + f, as Pillow's
// Image.transform takes them. Of places between pixels; pixel (x, y) has its middle at (x + 1/2, y + 1/2).
using AffineMatrix = std::array<double, 6>;
AffineMatrix sheared_across(
    double shear);                        // torchvision's shear_x: rows move to the left, the lower the more
AffineMatrix sheared_down(double shear);  // and columns up
AffineMatrix translated(double right, double down);
AffineMatrix rotated(double degrees, int64_t height, int64_t width);  // around the middle, counterclockwise

// The coefficients in 65536ths, as Pillow rounds them, with the places of middles: so many rows of
// `matrices`, int32 [rows, 6]. Throws Error(invalid_argument) where a coefficient is too large for images of
// kLargestWarped pixels a side.
Tensor affine_table(const std::vector<AffineMatrix>& matrices);
inline constexpr int64_t kLargestWarped = 8192;

// Each pixel is that in which its place lies, and black where that lies outside. coefficients: int32
// [batch, 6], rows of an affine_table(). Throws Error(invalid_argument) where images are larger than
// kLargestWarped.
Value* warp_images(Value* images, Value* coefficients);
// Blends with the image smoothed by (1 1 1, 1 5 1, 1 1 1) / 13, whose border is the image's: 1 leaves it as
// it is, 0 is smooth, 2 sharper. factor: fp32 [batch]. Images of fewer than three rows or columns stay.
Value* sharpen_images(Value* images, Value* factor);
// Rounds down to multiples of `step`, fp32 [batch]: 2^k leaves 8 - k bits.
Value* posterize_images(Value* images, Value* step);
// Inverts the levels from `threshold` on, fp32 [batch].
Value* solarize_images(Value* images, Value* threshold);
// Stretches the levels of each channel of an image so that the darkest is 0 and the brightest 255.
Value* stretch_levels(Value* images);
// Makes all levels of each channel of an image equally frequent, as far as that goes.
Value* equalize_levels(Value* images);

// RandAugment (Cubuk et al., 2020), with torchvision's operations and ranges: so many of fourteen operations
// in turn, each as likely, of the same strength, half of the signs each way. Places are the nearest pixels,
// and black is what comes in from outside.
struct RandAugmentOptions {
  int64_t operations = 0;  // for an image, at most 10
  int64_t magnitude = 9;   // 0 to 30
};
// Throws Error(invalid_argument) naming the option that is out of range.
void check_rand_augment(const RandAugmentOptions& options);
Value* rand_augment(Context& context, Value* images, const RandAugmentOptions& options);

}  // namespace tessera::nn
