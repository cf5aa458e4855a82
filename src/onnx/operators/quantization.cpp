// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger, ConvInteger, QLinearMatMul,
// QLinearConv.
#include <algorithm>

#include "tessera/base/narrow_float.h"

#include "onnx/types.h"
#include "onnx/windows.h"

namespace tessera::onnx {
namespace {

// A scale or zero point in a shape that broadcasts against x: one number, one for each element of an axis, or
// one for each block of an axis.
Value* spread(LowerCall& call, Value* parameter, const Shape& x, int64_t axis, int64_t block) {
  const Shape own = shape_of(parameter);
  if (element_count(own) == 1) return reshape(parameter, {});
  const auto at = static_cast<size_t>(axis_of(call, axis, std::ssize(x)));
  if (block == 0 || own.size() != x.size()) {
    call.require(own.size() == 1 && own[0] == x[at], "there is to be one scale for each element of its axis");
    Shape shape(x.size(), 1);
    shape[at] = own[0];
    return reshape(parameter, shape);
  }
  call.require(own[at] * block >= x[at], "there is to be one scale for each block of its axis");
  Shape apart = own;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(at) + 1, block);
  Shape joined = own;
  joined[at] *= block;
  Value* repeated = reshape(broadcast(unsqueeze(parameter, {static_cast<int64_t>(at) + 1}), apart), joined);
  return slice_axis(repeated, static_cast<int64_t>(at), 0, x[at]);
}

DataType wider(DataType a, DataType b) {
  return bits_of(a) >= bits_of(b) ? a : b;
}

// Halves round to even; what the type cannot hold becomes what is nearest.
Value* quantized(Value* scaled, Value* zero_point, DataType type, bool saturate) {
  if (is_narrow_float(type)) {
    if (zero_point != nullptr) scaled = ops::add(scaled, ops::cast(zero_point, scaled->data_type()));
    return ops::apply("cast", {scaled}, {{"type", type}, {"saturate", saturate}})->output();
  }
  Value* rounded = ops::round(ops::cast(scaled, wider(scaled->data_type(), DataType::fp32)));
  if (zero_point != nullptr) rounded = ops::add(rounded, ops::cast(zero_point, rounded->data_type()));
  return ops::cast(rounded, type);
}

void lower_quantize(LowerCall& call) {
  Value* x = call.operand(0);
  const Shape shape = shape_of(x);
  const int64_t axis = call.integer("axis", 1);
  const int64_t block = call.integer("block_size", 0);
  DataType type = DataType::uint8;
  if (call.integer("output_dtype", 0) != 0) type = data_type_of(call.integer("output_dtype"));
  if (call.has(2)) type = call.type(2).data_type;
  DataType computing = wider(x->data_type(), call.type(1).data_type);
  if (!kFloatingTypes.contains(x->data_type())) computing = DataType::fp32;
  if (call.integer("precision", 0) != 0) computing = data_type_of(call.integer("precision"));
  Value* scale = spread(call, ops::cast(call.operand(1), computing), shape, axis, block);
  Value* zero_point =
      call.has(2) ? spread(call, ops::cast(call.operand(2), DataType::fp32), shape, axis, block) : nullptr;
  call.result(0, quantized(ops::divide(ops::cast(x, computing), scale), zero_point, type,
                           call.integer("saturate", 1) != 0));
}

void lower_dequantize(LowerCall& call) {
  const Shape shape = call.type(0).static_shape();
  const int64_t axis = call.integer("axis", 1);
  const int64_t block = call.integer("block_size", 0);
  const DataType scale_type = call.type(1).data_type;
  const DataType type =
      call.integer("output_dtype", 0) != 0 ? data_type_of(call.integer("output_dtype")) : scale_type;
  Value* x = ops::cast(call.operand(0), DataType::fp32);
  if (call.has(2))
    x = ops::subtract(x, spread(call, ops::cast(call.operand(2), DataType::fp32), shape, axis, block));
  Value* scale = spread(call, ops::cast(call.operand(1), DataType::fp32), shape, axis, block);
  call.result(0, ops::cast(ops::multiply(x, scale), type));
}

void lower_dynamic_quantize(LowerCall& call) {
  Value* x = call.operand(0);
  Value* zero = ops::constant_like(x, 0);
  Value* high = ops::maximum(ops::reduce_max(x), zero);
  Value* low = ops::minimum(ops::reduce_min(x), zero);
  Value* width = ops::subtract(high, low);
  Value* scale = ops::divide(ops::select(ops::equal(width, zero), ops::constant_like(x, 1), width),
                             ops::constant_like(x, 255));
  Value* zero_point =
      ops::cast(ops::round(ops::clip(ops::divide(ops::negate(low), scale), 0, 255)), DataType::uint8);
  call.result(0, quantized(ops::divide(x, scale), zero_point, DataType::uint8, true));
  call.result(1, scale);
  call.result(2, zero_point);
}

// The zero point of an operand; null also where it is known to be 0, as weights mostly have it.
Value* zero_point_of(LowerCall& call, size_t operand) {
  if (!call.has(operand)) return nullptr;
  const Tensor* settled = call.settled(operand);
  if (settled == nullptr) return call.operand(operand);
  const std::vector<double> numbers = settled->to_doubles();
  const bool none = std::all_of(numbers.begin(), numbers.end(), [](double number) { return number == 0; });
  return none ? nullptr : call.operand(operand);
}

// A zero point for each row of the left factor, or for each column of the right one.
Value* along(Value* zero_point, int64_t axis_from_end) {
  Value* wide = ops::cast(zero_point, DataType::int32);
  const Shape shape = shape_of(wide);
  if (element_count(shape) == 1) return reshape(wide, {});
  if (shape.size() > 1) return wide;
  return axis_from_end == 2 ? unsqueeze(wide, {1}) : unsqueeze(wide, {0});
}

// (a - az) (b - bz) in int32: the products of the bytes, less what the zero points add.
Value* integer_product(Value* a, Value* b, Value* a_zero, Value* b_zero) {
  Graph& graph = a->graph();
  const double depth = static_cast<double>(extent(a, a->type().rank() - 1));
  Value* product = ops::cast(ops::matmul(a, b), DataType::int32);
  Value* columns = a_zero == nullptr
                       ? nullptr
                       : ops::reduce_sum(ops::cast(b, DataType::int32), {{b->type().rank() - 2}, true});
  Value* rows = b_zero == nullptr
                    ? nullptr
                    : ops::reduce_sum(ops::cast(a, DataType::int32), {{a->type().rank() - 1}, true});
  if (a_zero != nullptr) product = ops::subtract(product, ops::multiply(along(a_zero, 2), columns));
  if (b_zero != nullptr) product = ops::subtract(product, ops::multiply(along(b_zero, 1), rows));
  if (a_zero != nullptr && b_zero != nullptr) {
    Value* both = ops::multiply(along(a_zero, 2), along(b_zero, 1));
    product = ops::add(product, ops::multiply(both, number(graph, DataType::int32, depth)));
  }
  return product;
}

void lower_matmul_integer(LowerCall& call) {
  call.result(
      0, integer_product(call.operand(0), call.operand(1), zero_point_of(call, 2), zero_point_of(call, 3)));
}

// x * (a * b / y) + zero point, rounded to the type.
Value* requantized(Value* sums, Value* a_scale, Value* b_scale, Value* y_scale, Value* zero_point,
                   DataType type) {
  const auto wide = [](Value* scale) { return ops::cast(scale, DataType::fp32); };
  Value* factor = ops::divide(ops::multiply(wide(a_scale), wide(b_scale)), wide(y_scale));
  Value* scaled = ops::multiply(ops::cast(sums, DataType::fp32), factor);
  return quantized(scaled, zero_point, type, true);
}

Value* scale_along(Value* scale, int64_t axis_from_end) {
  const Shape shape = shape_of(scale);
  if (element_count(shape) == 1) return reshape(scale, {});
  return shape.size() > 1 ? scale : unsqueeze(scale, {axis_from_end == 2 ? 1 : 0});
}

void lower_quantized_matmul(LowerCall& call) {
  Value* sums =
      integer_product(call.operand(0), call.operand(3), zero_point_of(call, 2), zero_point_of(call, 5));
  call.result(0, requantized(sums, scale_along(call.operand(1), 2), scale_along(call.operand(4), 1),
                             scale_along(call.operand(6), 1), scale_along(call.operand(7), 1),
                             call.type(7).data_type));
}

// x, channels last, with its zero point around it.
Value* padded_by(Value* x, Value* zero_point, const Windows& windows) {
  std::vector<int64_t> low{0};
  std::vector<int64_t> high{0};
  low.insert(low.end(), windows.low.begin(), windows.low.end());
  high.insert(high.end(), windows.high.begin(), windows.high.end());
  low.push_back(0);
  high.push_back(0);
  const auto pads = [](int64_t pad) { return pad != 0; };
  if (std::none_of(low.begin(), low.end(), pads) && std::none_of(high.begin(), high.end(), pads)) return x;
  Shape pixels = shape_of(x);
  pixels.front() = pixels.back() = 1;
  Value* inside = ops::pad(broadcast(number(x->graph(), DataType::uint8, 1), pixels), low, high);
  return ops::select(ops::cast(inside, DataType::boolean), ops::pad(x, low, high), reshape(zero_point, {}));
}

// A number of each group for each of its filters, along the last axis.
Value* of_each_filter(Value* numbers, int64_t filters) {
  const Shape shape = shape_of(numbers);
  if (shape.back() == 1) return numbers;
  Shape apart = shape;
  apart.push_back(filters / shape.back());
  Shape joined = shape;
  joined.back() = filters;
  return reshape(broadcast(unsqueeze(numbers, {std::ssize(shape)}), apart), joined);
}

// (x - xz) (w - wz) summed in int32, channels last: the sums of the bytes' products, less what the zero
// points add.
Value* integer_convolution(LowerCall& call, Value* x, Value* weight, Value* x_zero, Value* weight_zero) {
  const Shape shape = shape_of(weight);
  const Windows windows = windows_of(call, shape_of(x), std::vector<int64_t>(shape.begin() + 2, shape.end()));
  ops::ConvolutionOptions options{windows.strides, windows.low, windows.high, windows.dilations,
                                  call.integer("group", 1)};
  Value* image = channels_last(x);
  Value* filter = channels_last(weight);
  Graph& graph = filter->graph();
  if (x_zero != nullptr) {
    image = padded_by(image, x_zero, windows);
    options.padding_low.assign(windows.axes(), 0);
    options.padding_high.assign(windows.axes(), 0);
    x_zero = reshape(ops::cast(x_zero, DataType::int32), {});
  }
  Value* sums = ops::convolution(image, filter, options);
  if (x_zero != nullptr) {
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < std::ssize(shape); ++axis) axes.push_back(axis);
    Value* of_filters = ops::reduce_sum(ops::cast(filter, DataType::int32), {axes});
    sums = ops::subtract(sums, ops::multiply(x_zero, of_filters));
  }
  if (weight_zero != nullptr) {
    Shape ones = shape_of(filter);
    ones[0] = options.groups;
    Value* pixels = ops::convolution(image, broadcast(number(graph, DataType::int8, 1), ones), options);
    if (x_zero != nullptr) {
      const auto products = static_cast<double>(product(shape, 1, shape.size()));
      pixels = ops::subtract(pixels, ops::multiply(x_zero, number(graph, DataType::int32, products)));
    }
    Value* wide = ops::cast(weight_zero, DataType::int32);
    if (element_count(shape_of(wide)) == 1) wide = reshape(wide, {});
    sums = ops::subtract(sums, ops::multiply(wide, of_each_filter(pixels, shape[0])));
  }
  return sums;
}

void lower_convolution_integer(LowerCall& call) {
  call.result(0, channels_first(integer_convolution(call, call.operand(0), call.operand(1),
                                                    zero_point_of(call, 2), zero_point_of(call, 3))));
}

void lower_quantized_convolution(LowerCall& call) {
  Value* sums = integer_convolution(call, call.operand(0), call.operand(3), zero_point_of(call, 2),
                                    zero_point_of(call, 5));
  if (call.has(8)) sums = ops::add(sums, ops::cast(call.operand(8), sums->data_type()));
  Value* weight_scale = call.operand(4);
  if (element_count(shape_of(weight_scale)) == 1) weight_scale = reshape(weight_scale, {});
  Value* y = requantized(sums, reshape(call.operand(1), {}), weight_scale, reshape(call.operand(6), {}),
                         reshape(call.operand(7), {}), call.type(7).data_type);
  call.result(0, channels_first(y));
}

const RuleRegistrations kRegistration{
    {.name = "QuantizeLinear", .lower = lower_quantize},
    {.name = "DequantizeLinear", .lower = lower_dequantize},
    {.name = "DynamicQuantizeLinear", .lower = lower_dynamic_quantize},
    {.name = "MatMulInteger", .lower = lower_matmul_integer},
    {.name = "ConvInteger", .lower = lower_convolution_integer},
    {.name = "QLinearMatMul", .lower = lower_quantized_matmul},
    {.name = "QLinearConv", .lower = lower_quantized_convolution},
};

}  // namespace
}  // namespace tessera::onnx
