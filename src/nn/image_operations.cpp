#include "tessera/nn/image_operations.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "nn/channels.h"

namespace tessera::nn {
namespace {

constexpr int64_t kLevels = 256;

Value* as_real(Value* images) {
  return ops::cast(images, DataType::fp32);
}

// [batch] to [batch, 1, 1, 1].
Value* per_image(Value* numbers) {
  return ops::reshape(numbers, {numbers->shape()[0], 1, 1, 1});
}

Value* to_levels(Value* x) {
  return ops::clip(ops::floor(x), 0, kLevels - 1);
}

// The sum over three neighbors along an axis, of which the outermost have none: shorter by two.
Value* sum_of_three(Value* x, size_t axis) {
  Value* sum = nullptr;
  for (int64_t first = 0; first < 3; ++first) {
    std::vector<int64_t> starts(4, 0);
    std::vector<int64_t> limits(4, ops::kWholeAxis);
    starts[axis] = first;
    limits[axis] = x->shape()[axis].value() - 2 + first;
    Value* part = ops::slice(x, starts, limits);
    sum = sum == nullptr ? part : ops::add(sum, part);
  }
  return sum;
}

// [batch, H, W, C] as [batch, C, H * W] and back.
Value* to_planes(Value* images) {
  const SymbolicShape& shape = images->shape();
  return ops::transpose(ops::reshape(images, {shape[0], shape[1] * shape[2], shape[3]}), {0, 2, 1});
}
Value* from_planes(Value* planes, const SymbolicShape& shape) {
  return ops::reshape(ops::transpose(planes, {0, 2, 1}), shape);
}

}  // namespace

Value* sharpen_images(Value* images, Value* factor) {
  Value* x = as_real(images);
  const int64_t height = x->shape()[1].value();
  const int64_t width = x->shape()[2].value();
  if (height < 3 || width < 3) return x;
  Value* inner = ops::slice(x, {0, 1, 1, 0}, {ops::kWholeAxis, height - 1, width - 1, ops::kWholeAxis});
  Value* around = sum_of_three(sum_of_three(x, 1), 2);
  Value* smooth = ops::round(ops::divide(ops::add(around, ops::multiply(inner, 4)), 13));
  Value* blended =
      to_levels(ops::add(smooth, ops::multiply(ops::subtract(inner, smooth), per_image(factor))));
  Value* top = ops::slice(x, {0, 0, 0, 0}, {ops::kWholeAxis, 1, ops::kWholeAxis, ops::kWholeAxis});
  Value* bottom =
      ops::slice(x, {0, height - 1, 0, 0}, {ops::kWholeAxis, height, ops::kWholeAxis, ops::kWholeAxis});
  Value* left = ops::slice(x, {0, 1, 0, 0}, {ops::kWholeAxis, height - 1, 1, ops::kWholeAxis});
  Value* right = ops::slice(x, {0, 1, width - 1, 0}, {ops::kWholeAxis, height - 1, width, ops::kWholeAxis});
  return ops::concat({top, ops::concat({left, blended, right}, 2), bottom}, 1);
}

Value* posterize_images(Value* images, Value* step) {
  Value* steps = per_image(step);
  return ops::multiply(ops::floor(ops::divide(as_real(images), steps)), steps);
}

Value* solarize_images(Value* images, Value* threshold) {
  Value* x = as_real(images);
  return ops::select(ops::less(x, per_image(threshold)), x, ops::subtract(kLevels - 1, x));
}

Value* stretch_levels(Value* images) {
  Value* planes = to_planes(as_real(images));
  Value* darkest = ops::reduce_min(planes, {.axes = {2}, .keep_dimensions = true});
  Value* range = ops::subtract(ops::reduce_max(planes, {.axes = {2}, .keep_dimensions = true}), darkest);
  Value* scaled = ops::multiply(ops::subtract(planes, darkest), kLevels - 1);
  Value* stretched = to_levels(ops::divide(scaled, ops::maximum(range, ops::constant_like(range, 1))));
  Value* is_flat = ops::equal(range, ops::zeros_like(range));
  return from_planes(ops::select(is_flat, planes, stretched), images->shape());
}

Value* equalize_levels(Value* images) {
  const int64_t count = images->shape()[0].value() * images->shape()[3].value();
  const int64_t pixels = images->shape()[1].value() * images->shape()[2].value();
  Graph& graph = images->graph();
  Value* levels = ops::reshape(to_planes(ops::cast(images, DataType::int32)), {count, pixels});
  // Level l of plane p is place p * 256 + l of all histograms, one after the other.
  Value* plane = ops::multiply(ops::iota(graph, {count, 1}, 0, DataType::int32), kLevels);
  Value* places = ops::add(levels, plane);
  Value* one = ops::broadcast_to(ops::constant(graph, Tensor::scalar(DataType::fp32, 1)), {count, pixels});
  Value* histogram = ops::reshape(ops::scatter_add(places, one, count * kLevels), {count, kLevels});
  // The brightest level that there is does not count.
  Value* level = ops::iota(graph, {1, kLevels}, 1, DataType::fp32);
  Value* is_there = ops::greater(histogram, ops::zeros_like(histogram));
  Value* brightest = ops::reduce_max(ops::select(is_there, level, ops::zeros_like(level)),
                                     {.axes = {1}, .keep_dimensions = true});
  Value* last =
      ops::reduce_sum(ops::select(ops::equal(level, brightest), histogram, ops::zeros_like(histogram)),
                      {.axes = {1}, .keep_dimensions = true});
  Value* step = ops::floor(ops::divide(ops::subtract(static_cast<double>(pixels), last), kLevels - 1));
  Value* some = ops::maximum(step, ops::constant_like(step, 1));
  Value* before = ops::cumulative_sum(histogram, {.axis = 1, .exclusive = true});
  Value* begin = ops::add(ops::floor(ops::divide(some, 2)), before);
  Value* equalized = to_levels(ops::divide(begin, some));
  Value* table = ops::select(ops::equal(step, ops::zeros_like(step)), level, equalized);
  Value* found = ops::gather(ops::reshape(table, {count * kLevels}), places);
  return from_planes(ops::reshape(found, {images->shape()[0], images->shape()[3], Dimension(pixels)}),
                     images->shape());
}

}  // namespace tessera::nn
