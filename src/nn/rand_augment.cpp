#include <cmath>

#include "tessera/base/error.h"
#include "tessera/nn/augmentation.h"
#include "tessera/ops/functions.h"

#include "nn/draws.h"

namespace tessera::nn {
namespace {

// In the order of torchvision's RandAugment.
enum class Operation : int64_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  stretch,   // AutoContrast
  equalize,  // the last
};
constexpr auto kOperations = static_cast<int64_t>(Operation::equalize) + 1;
constexpr int64_t kMostOperations = 10;  // for one image
constexpr double kMostMagnitude = 30;

// What is drawn for the images of a batch, and how strong it is.
struct Draw {
  Value* operation;  // fp32 [batch], whole numbers
  Value* sign;       // fp32 [batch], 1 or -1
  double strength;   // 0 to 1

  Value* is(Operation wanted) const {
    return ops::equal(operation, ops::constant_like(operation, static_cast<double>(wanted)));
  }
  // A parameter of the images that have this operation; of others that which changes nothing.
  Value* parameter(Operation wanted, Value* value, double otherwise) const {
    return ops::select(is(wanted), value, ops::constant_like(value, otherwise));
  }
  // 1 more or less by up to 0.9.
  Value* factor(Operation wanted) const {
    return parameter(wanted, ops::add(ops::multiply(sign, 0.9 * strength), 1), 1);
  }
};

// Of each operation with either sign, one row after the other.
Value* affine_coefficients(const Draw& draw, const Value* images) {
  const int64_t height = images->shape()[1].value();
  const int64_t width = images->shape()[2].value();
  // torchvision takes whole pixels.
  const auto translation = [&](int64_t extent) {
    return std::trunc(150.0 / 331.0 * static_cast<double>(extent) * draw.strength);
  };
  std::vector<AffineMatrix> matrices(2 * kOperations, translated(0, 0));
  for (const int64_t way : {0, 1}) {
    const double sign = way == 0 ? 1 : -1;
    const auto set = [&](Operation operation, const AffineMatrix& matrix) {
      matrices[static_cast<size_t>(2 * static_cast<int64_t>(operation) + way)] = matrix;
    };
    set(Operation::shear_x, sheared_across(sign * 0.3 * draw.strength));
    set(Operation::shear_y, sheared_down(sign * 0.3 * draw.strength));
    set(Operation::translate_x, translated(sign * translation(width), 0));
    set(Operation::translate_y, translated(0, sign * translation(height)));
    set(Operation::rotate, rotated(sign * 30 * draw.strength, height, width));
  }
  Value* row = ops::subtract(0.5, ops::divide(draw.sign, 2));  // 0 or 1
  row = ops::cast(ops::add(ops::multiply(draw.operation, 2), row), DataType::int32);
  return ops::gather(ops::constant(images->graph(), affine_table(matrices)), row);
}

Value* apply(Value* images, const Draw& draw) {
  Value* x = warp_images(images, affine_coefficients(draw, images));
  // Images of other than three channels have no color, and this operation leaves them as they are.
  const bool is_colored = images->shape().back() == Dimension(3);
  x = ops::round(adjust_color(x, {.brightness = draw.factor(Operation::brightness),
                                  .contrast = draw.factor(Operation::contrast),
                                  .saturation = is_colored ? draw.factor(Operation::color) : nullptr}));
  x = sharpen_images(x, draw.factor(Operation::sharpness));
  const double lost_bits = std::nearbyint(4 * draw.strength);
  Value* step = ops::constant_like(draw.sign, std::exp2(lost_bits));
  x = posterize_images(x, draw.parameter(Operation::posterize, step, 1));
  Value* threshold = ops::constant_like(draw.sign, 255 * (1 - draw.strength));
  x = solarize_images(x, draw.parameter(Operation::solarize, threshold, 256));
  const auto of_images = [](Value* flags) { return ops::reshape(flags, {flags->shape()[0], 1, 1, 1}); };
  x = ops::select(of_images(draw.is(Operation::stretch)), stretch_levels(x), x);
  return ops::select(of_images(draw.is(Operation::equalize)), equalize_levels(x), x);
}

}  // namespace

Value* rand_augment(Context& context, Value* images, const RandAugmentOptions& options) {
  check_rand_augment(options);
  Draws draws(context, images->shape()[0], 2 * options.operations);
  for (int64_t i = 0; i < options.operations; ++i) {
    Value* operation = ops::floor(draws.between(0, kOperations));
    Value* one = ops::constant_like(operation, 1);
    Value* sign = ops::select(draws.happens(0.5), one, ops::negate(one));
    images = apply(images, {.operation = operation,
                            .sign = sign,
                            .strength = static_cast<double>(options.magnitude) / kMostMagnitude});
  }
  return images;
}

void check_rand_augment(const RandAugmentOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.operations >= 0 && options.operations <= kMostOperations, code,
          "RandAugment applies {} operations, expected 0 to {}", options.operations, kMostOperations);
  require(options.magnitude >= 0 && static_cast<double>(options.magnitude) <= kMostMagnitude, code,
          "RandAugment's magnitude is {}, expected 0 to {}", options.magnitude, kMostMagnitude);
}

}  // namespace tessera::nn
