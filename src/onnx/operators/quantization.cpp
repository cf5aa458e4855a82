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
  call.result(0, integer_product(call.operand(0), call.operand(1), call.operand(2), call.operand(3)));
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
  Value* sums = integer_product(call.operand(0), call.operand(3), call.operand(2), call.operand(5));
  call.result(0, requantized(sums, scale_along(call.operand(1), 2), scale_along(call.operand(4), 1),
                             scale_along(call.operand(6), 1), scale_along(call.operand(7), 1),
                             call.type(7).data_type));
}

// Sums of products of bytes, channels last: in fp32 where it holds them all exactly.
Value* integer_convolution(LowerCall& call, Value* x, Value* weight, Value* x_zero, Value* weight_zero) {
  const Shape shape = shape_of(weight);
  const Windows windows = windows_of(call, shape_of(x), std::vector<int64_t>(shape.begin() + 2, shape.end()));
  const int64_t products = product(shape, 1, shape.size());
  const DataType type = products <= 256 ? DataType::fp32 : DataType::fp64;
  Value* image = ops::cast(x, type);
  Value* filter = ops::cast(weight, type);
  if (x_zero != nullptr) image = ops::subtract(image, reshape(ops::cast(x_zero, type), {}));
  if (weight_zero != nullptr) {
    Shape per_filter(shape.size(), 1);
    if (element_count(shape_of(weight_zero)) > 1) per_filter[0] = shape[0];
    filter = ops::subtract(filter, reshape(ops::cast(weight_zero, type), per_filter));
  }
  return ops::convolution(
      channels_last(image), channels_last(filter),
      {windows.strides, windows.low, windows.high, windows.dilations, call.integer("group", 1)});
}

void lower_convolution_integer(LowerCall& call) {
  Value* y = integer_convolution(call, call.operand(0), call.operand(1), call.operand(2), call.operand(3));
  call.result(0, ops::cast(channels_first(y), DataType::int32));
}

void lower_quantized_convolution(LowerCall& call) {
  Value* sums = integer_convolution(call, call.operand(0), call.operand(3), call.operand(2), call.operand(5));
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
