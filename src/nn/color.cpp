#include <array>
#include <numbers>

#include "tessera/base/error.h"
#include "tessera/nn/augmentation.h"
#include "tessera/ops/functions.h"

namespace tessera::nn {
namespace {

constexpr size_t kColors = 3;
using Row = std::array<float, kColors>;

constexpr Row kLuma{0.299F, 0.587F, 0.114F};
// What a quarter turn of I and Q adds to a color: K^-1 T K, where the rows of K are the luma above, I =
// (0.5959, -0.2746, -0.3213) and Q = (0.2115, -0.5227, 0.3112), and T takes (Y, I, Q) to (0, Q, -I), the way
// in which hue grows.
constexpr std::array<Row, kColors> kQuarterTurn{{{-0.16770325F, -0.32926815F, 0.49697139F},
                                                 {0.32813081F, -0.03552093F, -0.29260989F},
                                                 {-1.24973261F, 1.04650843F, 0.20322418F}}};

Value* of_colors(Value* like, const Row& row) {
  return ops::constant(like->graph(), Tensor::from<float>({kColors}, {row.begin(), row.end()}));
}

// [batch] to [batch, 1, 1, 1].
Value* per_image(Value* numbers) {
  return ops::reshape(numbers, {numbers->shape()[0], 1, 1, 1});
}

// The mean of the gray image, [batch, 1, 1, 1].
Value* mean_gray(Value* images) {
  const bool colored = images->shape().back() == Dimension(kColors);
  if (!colored) return ops::reduce_mean(images, {.axes = {1, 2, 3}, .keep_dimensions = true});
  Value* mean = ops::reduce_mean(images, {.axes = {1, 2}, .keep_dimensions = true});
  return ops::reduce_sum(ops::multiply(mean, of_colors(mean, kLuma)), {.axes = {3}, .keep_dimensions = true});
}

// The sum over k of channel k times column k of each image's matrix: saturation s and hue h turn a color,
// less its gray, by s (cos h + sin h * quarter turn). No product of matrices: those may run in 16 bits.
Value* turned(Value* images, Value* saturation, Value* hue) {
  Value* along = saturation != nullptr ? per_image(saturation) : nullptr;
  Value* across = nullptr;
  if (hue != nullptr) {
    Value* angle = per_image(ops::multiply(hue, 2 * std::numbers::pi));
    Value* scale = along != nullptr ? along : ops::constant_like(angle, 1);
    along = ops::multiply(scale, ops::cos(angle));
    across = ops::multiply(scale, ops::sin(angle));
  }
  const std::vector<Value*> channels = ops::split(images, {1, 1, 1}, 3);
  Value* sum = nullptr;
  for (size_t k = 0; k < kColors; ++k) {
    Row spread;
    Row turn;
    for (size_t c = 0; c < kColors; ++c) {
      spread[c] = (c == k ? 1.0F : 0.0F) - kLuma[k];
      turn[c] = kQuarterTurn[c][k];
    }
    Value* column = ops::add(ops::multiply(along, of_colors(along, spread)), kLuma[k]);
    if (across != nullptr) column = ops::add(column, ops::multiply(across, of_colors(across, turn)));
    Value* part = ops::multiply(ops::cast(channels[k], DataType::fp32), column);
    sum = sum == nullptr ? part : ops::add(sum, part);
  }
  return sum;
}

}  // namespace

Value* adjust_color(Value* images, const ColorFactors& factors) {
  const bool turns = factors.saturation != nullptr || factors.hue != nullptr;
  require(!turns || images->shape().back() == Dimension(kColors), ErrorCode::invalid_argument,
          "saturation and hue are of images with 3 channels, these have {}",
          images->shape().back().to_string());
  Value* pixels = ops::cast(images, DataType::fp32);
  Value* x = turns ? turned(images, factors.saturation, factors.hue) : pixels;
  Value* offset = nullptr;
  if (factors.contrast != nullptr) {
    Value* contrast = per_image(factors.contrast);
    x = ops::multiply(x, contrast);
    offset = ops::multiply(ops::subtract(1, contrast), mean_gray(pixels));
  }
  if (offset != nullptr) x = ops::add(x, offset);
  if (factors.brightness != nullptr) x = ops::multiply(x, per_image(factors.brightness));
  return ops::clip(x, 0, 255);
}

}  // namespace tessera::nn
