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
// `matrices`, int32 [rows, 6]. Throws Error(invalid_argument) where places of images of kLargestWarped pixels
// a side are more than 32 bits hold.
Tensor affine_table(const std::vector<AffineMatrix>& matrices);
inline constexpr int64_t kLargestWarped = 8192;

// Of each image, fp32 [batch].
struct AffineParameters {
  Value* degrees;  // clockwise
  Value* right;    // pixels
  Value* down;
  Value* scale;  // above 1: larger
  Value* shear;  // degrees
};
// The same coefficients of such maps around the middle, as torchvision's affine() has them.
Value* affine_coefficients(const AffineParameters& parameters, const Value* images);

// How a pixel is made of those around the place that it comes from; never more than these are looked at.
enum class WarpFilter : uint8_t {
  nearest,   // that in which the place lies
  bilinear,  // the four whose middles are nearest, by their distances, rounded to whole levels
};
// Black where the place lies outside. coefficients: int32 [batch, 6]. Throws Error(invalid_argument) where
// images are larger than kLargestWarped.
Value* warp_images(Value* images, Value* coefficients, WarpFilter filter = WarpFilter::nearest);
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

// A random map of each image around its middle, as torchvision's RandomAffine draws it.
struct RandomAffineOptions {
  double degrees = 0;      // turned by up to so many either way, at most 180
  double translation = 0;  // moved by up to this share of a side, either way, in whole pixels; at most 1
  double scale = 0;        // enlarged by 1 - x to 1 + x, at most 0.9
  double shear = 0;        // by up to so many degrees either way, at most 45
  double probability = 1;  // of all together
  WarpFilter filter = WarpFilter::bilinear;

  bool changes_images() const {
    return probability > 0 && (degrees > 0 || translation > 0 || scale > 0 || shear > 0);
  }
};
// Throws Error(invalid_argument) naming the option that is out of range.
void check_random_affine(const RandomAffineOptions& options);
// Throws the same where images are so large that places are more than 32 bits hold.
Value* random_affine(Context& context, Value* images, const RandomAffineOptions& options);

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
