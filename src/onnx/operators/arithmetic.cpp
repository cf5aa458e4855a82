// Add, Sub, Mul, Div, Pow, Mod, Max, Min, Sum, Mean, PRelu.
#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

using Binary = Value* (*)(Value*, Value*);

// Quotients of 64-bit numbers without sign, by Hacker's Delight (Warren 2012), 9-3: of half the dividend,
// doubled and set right.
Value* divide_unsigned(Value* a, Value* b) {
  Graph& graph = a->graph();
  const auto constant = [&](int64_t value) {
    return ops::constant(graph, Tensor::from<int64_t>({}, {value}));
  };
  Value* zero = constant(0);
  Value* negative = ops::less(a, zero);
  Value* half =
      ops::select(negative, ops::add(ops::divide(ordered_bits(a), constant(2)), constant(int64_t{1} << 62)),
                  ops::divide(a, constant(2)));
  Value* doubled = ops::multiply(ops::divide(half, b), constant(2));
  Value* rest = ops::subtract(a, ops::multiply(doubled, b));
  Value* more = ops::greater_equal(ordered_bits(rest), ordered_bits(b));
  Value* quotient = ops::add(doubled, ops::cast(more, DataType::int64));
  Value* large_divisor = ops::cast(ops::greater_equal(ordered_bits(a), ordered_bits(b)), DataType::int64);
  return ops::select(ops::less(b, zero), large_divisor, quotient);
}

template <Binary function>
void lower_binary(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* a = to_computing(call.operand(0));
  Value* b = to_computing(second_operand(call));
  call.result(0, from_computing(function(a, b), type));
}

void lower_divide(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* a = to_computing(call.operand(0));
  Value* b = to_computing(second_operand(call));
  call.result(0, from_computing(type == DataType::uint64 ? divide_unsigned(a, b) : ops::divide(a, b), type));
}

// Integers are raised in fp64: exact as far as its 53 digits go.
void lower_power(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  const DataType computing = is_floating(type) ? type : DataType::fp64;
  Value* power =
      ops::power(ops::cast(call.operand(0), computing), ops::cast(second_operand(call), computing));
  call.result(0, ops::cast(power, type));
}

// Of floating numbers the sign is that of the dividend, and else that of the divisor.
void lower_modulo(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  const bool follows_dividend = call.integer("fmod", 0) != 0;
  Value* a = call.operand(0);
  Value* b = call.operand(1);
  if (is_floating(type)) {
    a = ops::cast(a, DataType::fp64);
    b = ops::cast(b, DataType::fp64);
    Value* quotient = ops::divide(a, b);
    Value* whole = follows_dividend ? ops::multiply(ops::sign(quotient), ops::floor(ops::absolute(quotient)))
                                    : ops::floor(quotient);
    Value* rest = ops::subtract(a, ops::multiply(b, whole));
    // Of an infinite divisor the dividend is left.
    Value* is_small = ops::logical_and(ops::is_finite(a), ops::logical_not(ops::is_finite(b)));
    call.result(0, ops::cast(follows_dividend ? ops::select(is_small, a, rest) : rest, type));
    return;
  }
  a = to_computing(a);
  b = to_computing(b);
  Value* quotient = type == DataType::uint64 ? divide_unsigned(a, b) : ops::divide(a, b);
  Value* rest = ops::subtract(a, ops::multiply(b, quotient));
  if (!follows_dividend && traits_of(type).kind == TypeKind::signed_integer) {
    Value* zero = number(call.graph(), rest->data_type(), 0);
    Value* differs = ops::not_equal(ops::less(rest, zero), ops::less(b, zero));
    rest = ops::select(ops::logical_and(differs, ops::not_equal(rest, zero)), ops::add(rest, b), rest);
  }
  call.result(0, from_computing(rest, type));
}

Value* extremum(Value* a, Value* b, bool largest, bool is_unsigned) {
  if (!is_unsigned) return largest ? ops::maximum(a, b) : ops::minimum(a, b);
  return ops::select(
      largest ? ops::less(ordered_bits(a), ordered_bits(b)) : ops::less(ordered_bits(b), ordered_bits(a)), b,
      a);
}

template <bool largest>
void lower_extremum(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* result = to_computing(call.operand(0));
  for (size_t i = 1; i < call.operand_count(); ++i)
    result = extremum(result, to_computing(call.operand(i)), largest, type == DataType::uint64);
  call.result(0, from_computing(result, type));
}

Value* sum_of_operands(LowerCall& call) {
  Value* sum = call.operand(0);
  for (size_t i = 1; i < call.operand_count(); ++i) sum = ops::add(sum, call.operand(i));
  return sum;
}

void lower_prelu(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* x = to_computing(call.operand(0));
  Value* slope = to_computing(call.operand(1));
  // Before opset 7 one for each channel stood by itself.
  if (call.version() < 7 && slope->type().rank() == 1 && extent(slope, 0) > 1 && x->type().rank() > 1) {
    Shape channels(static_cast<size_t>(x->type().rank()), 1);
    channels[1] = extent(slope, 0);
    slope = reshape(slope, channels);
  }
  Value* scaled = ops::multiply(x, slope);
  call.result(0, from_computing(ops::select(ops::less(x, ops::constant_like(x, 0)), scaled, x), type));
}

const RuleRegistrations kRegistration{
    {.name = "Add", .lower = lower_binary<ops::add>},
    {.name = "Sub", .lower = lower_binary<ops::subtract>},
    {.name = "Mul", .lower = lower_binary<ops::multiply>},
    {.name = "Div", .lower = lower_divide},
    {.name = "Pow", .lower = lower_power},
    {.name = "Mod", .lower = lower_modulo},
    {.name = "Max", .lower = lower_extremum<true>},
    {.name = "Min", .lower = lower_extremum<false>},
    {.name = "Sum", .lower = [](LowerCall& call) { call.result(0, sum_of_operands(call)); }},
    {.name = "Mean",
     .lower =
         [](LowerCall& call) {
           call.result(0,
                       ops::multiply(sum_of_operands(call), 1.0 / static_cast<double>(call.operand_count())));
         }},
    {.name = "PRelu", .lower = lower_prelu},
};

}  // namespace
}  // namespace tessera::onnx
