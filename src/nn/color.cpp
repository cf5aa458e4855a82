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

// [batch] to [batch, 1, 1].
Value* per_image(Value* numbers) {
  return ops::reshape(numbers, {numbers->shape()[0], 1, 1});
}

// One number for each color: [3, 1].
Value* of_colors(Value* like, const Row& row) {
  return ops::constant(like->graph(), Tensor::from<float>({kColors, 1}, {row.begin(), row.end()}));
}

// The mean of the gray image, [batch, 1, 1].
Value* mean_gray(Value* planes) {
  Value* mean = ops::reduce_mean(planes, {.axes = {2}, .keep_dimensions = true});
  if (mean->shape()[1] == Dimension(kColors)) {
    Value* parts = ops::multiply(mean, of_colors(mean, kLuma));
    return ops::reduce_sum(parts, {.axes = {1}, .keep_dimensions = true});
  }
  return ops::reduce_mean(mean, {.axes = {1}, .keep_dimensions = true});
}

// The sum of the planes, each by its number.
Value* weighted(const std::vector<Value*>& planes, const Row& numbers) {
  Value* sum = ops::multiply(planes[0], numbers[0]);
  for (size_t k = 1; k < kColors; ++k) sum = ops::add(sum, ops::multiply(planes[k], numbers[k]));
  return sum;
}

// Saturation s and hue h make of a color, less its gray, s (cos h + sin h * quarter turn) of it. No product
// of matrices: those may run in 16 bits.
Value* mix_planes(Value* planes, Value* saturation, Value* hue) {
  Value* along = saturation != nullptr ? per_image(saturation) : nullptr;
  Value* across = nullptr;
  if (hue != nullptr) {
    Value* angle = per_image(ops::multiply(hue, 2 * std::numbers::pi));
    Value* scale = along != nullptr ? along : ops::constant_like(angle, 1);
    along = ops::multiply(scale, ops::cos(angle));
    across = ops::multiply(scale, ops::sin(angle));
  }
  const std::vector<Value*> colors = ops::split(planes, {1, 1, 1}, 1);
  Value* gray = weighted(colors, kLuma);
  std::vector<Value*> mixed;
  for (size_t c = 0; c < kColors; ++c) {
    Value* color = ops::add(gray, ops::multiply(along, ops::subtract(colors[c], gray)));
    if (across != nullptr) color = ops::add(color, ops::multiply(across, weighted(colors, kQuarterTurn[c])));
    mixed.push_back(color);
  }
  return ops::concat(mixed, 1);
}

}  // namespace

Value* adjust_color(Value* images, const ColorFactors& factors) {
  const bool turns = factors.saturation != nullptr || factors.hue != nullptr;
  require(!turns || images->shape().back() == Dimension(kColors), ErrorCode::invalid_argument,
          "saturation and hue are of images with 3 channels, these have {}",
          images->shape().back().to_string());
  // By planes, [batch, C, H * W]: numbers of an image or a color then hold for long runs.
  const SymbolicShape& shape = images->shape();
  Value* rows = ops::reshape(images, {shape[0], shape[1] * shape[2], shape[3]});
  Value* planes = ops::cast(ops::transpose(rows, {0, 2, 1}), DataType::fp32);
  Value* x = turns ? mix_planes(planes, factors.saturation, factors.hue) : planes;
  if (factors.contrast != nullptr) {
    Value* contrast = per_image(factors.contrast);
    Value* offset = ops::multiply(ops::subtract(1, contrast), mean_gray(planes));
    x = ops::add(ops::multiply(x, contrast), offset);
  }
  if (factors.brightness != nullptr) x = ops::multiply(x, per_image(factors.brightness));
  return ops::reshape(ops::transpose(ops::clip(x, 0, 255), {0, 2, 1}), shape);
}

}  // namespace tessera::nn
