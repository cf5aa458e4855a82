// MaxPool, AveragePool, LpPool, GlobalMaxPool, GlobalAveragePool, GlobalLpPool, MaxUnpool.
#include <algorithm>
#include <cmath>

#include "onnx/windows.h"

namespace tessera::onnx {
namespace {

ops::PoolOptions pool_options(const Windows& windows) {
  return {windows.window, windows.strides, windows.low, windows.high, true};
}

double lowest_of(DataType type) {
  return is_floating(type) ? -std::numeric_limits<double>::infinity() : traits_of(type).lowest;
}

// The flat place of each element in its image, or with the spatial axes the other way round.
Value* places(Graph& graph, const Shape& shape, bool column_major) {
  if (!column_major) {
    Value* flat = ops::iota(graph, {element_count(shape)}, 0, DataType::int64);
    return reshape(flat, shape);
  }
  Shape reversed(shape);
  std::reverse(reversed.begin() + 2, reversed.end());
  std::vector<int64_t> permutation{0, 1};
  for (int64_t axis = std::ssize(shape); axis-- > 2;) permutation.push_back(axis);
  return transpose(reshape(ops::iota(graph, {element_count(shape)}, 0, DataType::int64), reversed),
                   permutation);
}

void lower_max_pool(LowerCall& call) {
  Value* x = call.operand(0);
  const DataType type = x->data_type();
  const Shape shape = shape_of(x);
  const Windows windows = windows_of(call, shape, call.integers("kernel_shape"));
  if (windows.is_plain() && !call.wants(1)) {
    Value* pooled = ops::max_pool(channels_last(to_computing(x)), pool_options(windows));
    return call.result(0, from_computing(channels_first(pooled), type));
  }
  Value* computing = to_computing(x);
  const std::vector<Value*> values =
      taps_of(padded(computing, windows, lowest_of(computing->data_type())), windows);
  const bool column_major = call.integer("storage_order", 0) != 0;
  const std::vector<Value*> from =
      taps_of(padded(places(call.graph(), shape, column_major), windows, 0), windows);
  Value* best = values[0];
  Value* place = from[0];
  for (size_t i = 1; i < values.size(); ++i) {
    Value* more = ops::greater(values[i], best);
    place = ops::select(more, from[i], place);
    best = ops::maximum(values[i], best);
  }
  call.result(0, from_computing(best, type));
  call.result(1, place);
}

// How many elements each window has that count: of the image, and of its padding where that counts.
Tensor counts_of(const Windows& windows, const Shape& image, bool padding_counts) {
  Shape shape{1, 1};
  shape.insert(shape.end(), windows.counts.begin(), windows.counts.end());
  Tensor result = Tensor::full(DataType::fp64, shape, 1);
  const std::vector<int64_t> strides = row_major_strides(shape);
  for (size_t axis = 0; axis < windows.axes(); ++axis) {
    const int64_t begin = padding_counts ? 0 : windows.low[axis];
    const int64_t end = image[axis + 2] + windows.low[axis] + (padding_counts ? windows.given_high[axis] : 0);
    for (int64_t i = 0; i < result.size(); ++i) {
      const int64_t first = i / strides[axis + 2] % windows.counts[axis] * windows.strides[axis];
      int64_t inside = 0;
      for (int64_t tap = 0; tap < windows.window[axis]; ++tap) {
        const int64_t at = first + tap * windows.dilations[axis];
        inside += at >= begin && at < end ? 1 : 0;
      }
      result.set(i, result.at(i) * static_cast<double>(inside));
    }
  }
  return result;
}

Value* sum_of(const std::vector<Value*>& values) {
  Value* sum = values[0];
  for (size_t i = 1; i < values.size(); ++i) sum = ops::add(sum, values[i]);
  return sum;
}

// The sum over each window of x, with zeros around it.
Value* window_sums(Value* x, const Windows& windows) {
  if (!windows.is_plain()) return sum_of(taps_of(padded(x, windows, 0), windows));
  Value* means = channels_first(ops::average_pool(channels_last(x), pool_options(windows)));
  return ops::multiply(means, static_cast<double>(windows.taps()));
}

void lower_average_pool(LowerCall& call) {
  Value* x = call.operand(0);
  const Shape shape = shape_of(x);
  const Windows windows = windows_of(call, shape, call.integers("kernel_shape"));
  const Tensor counts = counts_of(windows, shape, call.integer("count_include_pad", 0) != 0);
  call.result(0,
              ops::divide(window_sums(x, windows), ops::constant(call.graph(), counts.cast(x->data_type()))));
}

Value* power_of(Value* x, double exponent) {
  return ops::power(x, ops::constant_like(x, exponent));
}

void lower_lp_pool(LowerCall& call) {
  Value* x = call.operand(0);
  const auto p = static_cast<double>(call.integer("p", 2));
  const Windows windows = windows_of(call, shape_of(x), call.integers("kernel_shape"));
  Value* powers = power_of(ops::absolute(x), p);
  call.result(0, power_of(sum_of(taps_of(padded(powers, windows, 0), windows)), 1 / p));
}

std::vector<int64_t> spatial_axes(const Value* x) {
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < x->type().rank(); ++axis) axes.push_back(axis);
  return axes;
}

void lower_global_lp_pool(LowerCall& call) {
  Value* x = call.operand(0);
  const auto p = static_cast<double>(call.integer("p", 2));
  call.result(0, power_of(ops::reduce_sum(power_of(ops::absolute(x), p), {spatial_axes(x), true}), 1 / p));
}

// Each element back at the place that it came from. Places count in the image that was pooled, which may be
// smaller than the result that is asked for.
void lower_max_unpool(LowerCall& call) {
  Value* x = call.operand(0);
  const Shape shape = shape_of(x);
  const std::vector<int64_t> window = call.integers("kernel_shape");
  std::vector<int64_t> strides = call.integers("strides");
  std::vector<int64_t> pads = call.integers("pads");
  call.require(shape.size() == window.size() + 2, "its operand is to be [N, C, spatial...]");
  if (strides.empty()) strides.assign(window.size(), 1);
  if (pads.empty()) pads.assign(2 * window.size(), 0);
  Shape image{shape[0], shape[1]};
  for (size_t axis = 0; axis < window.size(); ++axis)
    image.push_back((shape[axis + 2] - 1) * strides[axis] + window[axis] - pads[axis] -
                    pads[axis + window.size()]);
  const int64_t count = element_count(shape);
  Value* zeros = broadcast(number(call.graph(), x->data_type(), 0), {element_count(image)});
  Value* y = reshape(ops::set_rows(zeros, reshape(call.operand(1), {count}), reshape(x, {count})), image);
  if (call.has(2)) {
    const std::vector<int64_t> wanted = call.known_integers(2);
    call.require(wanted.size() == image.size(), "output_shape is to have an extent for each axis");
    std::vector<int64_t> more;
    for (size_t axis = 0; axis < image.size(); ++axis) {
      call.require(wanted[axis] >= image[axis], "output_shape is smaller than the image that was pooled");
      more.push_back(wanted[axis] - image[axis]);
    }
    y = ops::pad(y, std::vector<int64_t>(more.size(), 0), more, 0);
  }
  call.result(0, y);
}

const RuleRegistrations kRegistration{
    {.name = "MaxPool", .lower = lower_max_pool},
    {.name = "AveragePool", .lower = lower_average_pool},
    {.name = "LpPool", .lower = lower_lp_pool},
    {.name = "GlobalMaxPool",
     .lower =
         [](LowerCall& call) {
           call.result(0, ops::reduce_max(call.operand(0), {spatial_axes(call.operand(0)), true}));
         }},
    {.name = "GlobalAveragePool",
     .lower =
         [](LowerCall& call) {
           call.result(0, ops::reduce_mean(call.operand(0), {spatial_axes(call.operand(0)), true}));
         }},
    {.name = "GlobalLpPool", .lower = lower_global_lp_pool},
    {.name = "MaxUnpool", .lower = lower_max_unpool},
};

}  // namespace
}  // namespace tessera::onnx
