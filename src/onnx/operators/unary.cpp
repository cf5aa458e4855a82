// Functions of one tensor that are an operator of the frame, or few of them.
#include <numbers>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

using Unary = Value* (*)(Value*);

template <Unary function>
void lower_unary(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  call.result(0, from_computing(function(to_computing(call.operand(0))), type));
}

// In fp64, where differences of large terms keep the digits of fp32.
template <Unary function>
void lower_wide(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  call.result(0, ops::cast(function(ops::cast(call.operand(0), DataType::fp64)), type));
}

Value* is_nan(Value* x) {
  return ops::not_equal(x, x);
}

Value* tangent(Value* x) {
  return ops::divide(ops::sin(x), ops::cos(x));
}
Value* sinh(Value* x) {
  return ops::multiply(ops::subtract(ops::exp(x), ops::exp(ops::negate(x))), 0.5);
}
Value* cosh(Value* x) {
  return ops::multiply(ops::add(ops::exp(x), ops::exp(ops::negate(x))), 0.5);
}
// Of the magnitude, for which nothing cancels.
Value* asinh(Value* x) {
  Value* magnitude = ops::absolute(x);
  Value* sum = ops::add(magnitude, ops::sqrt(ops::add(ops::square(magnitude), 1)));
  return ops::multiply(ops::sign(x), ops::log(sum));
}
Value* acosh(Value* x) {
  return ops::log(ops::add(x, ops::sqrt(ops::subtract(ops::square(x), ops::constant_like(x, 1)))));
}
Value* atanh(Value* x) {
  return ops::multiply(ops::log(ops::divide(ops::add(x, 1), ops::subtract(1, x))), 0.5);
}
// Beyond 1 of the inverse, then twice of half the angle, and there the series: in fp64 to its last digits.
Value* atan(Value* x) {
  Value* one = ops::constant_like(x, 1);
  Value* magnitude = ops::absolute(x);
  Value* large = ops::greater(magnitude, one);
  Value* t = ops::select(large, ops::divide(one, magnitude), magnitude);
  for (int i = 0; i < 2; ++i) t = ops::divide(t, ops::add(ops::sqrt(ops::add(ops::square(t), 1)), 1));
  Value* square = ops::square(t);
  constexpr int kLast = 23;
  Value* sum = ops::constant_like(x, -1.0 / kLast);
  for (int power = kLast - 2; power > 0; power -= 2)
    sum = ops::add(ops::multiply(sum, square), (power % 4 == 1 ? 1.0 : -1.0) / power);
  Value* angle = ops::multiply(ops::multiply(sum, t), 4);
  return ops::multiply(ops::sign(x), ops::select(large, ops::subtract(std::numbers::pi / 2, angle), angle));
}
Value* asin(Value* x) {
  Value* other = ops::sqrt(ops::multiply(ops::subtract(1, x), ops::add(x, 1)));
  return atan(ops::divide(x, other));
}
Value* acos(Value* x) {
  return ops::subtract(std::numbers::pi / 2, asin(x));
}
Value* softsign(Value* x) {
  return ops::divide(x, ops::add(ops::absolute(x), 1));
}

// An infinity in directions that count.
void lower_is_infinite(LowerCall& call) {
  Value* x = call.operand(0);
  if (!kFloatingTypes.contains(x->data_type())) x = ops::cast(x, DataType::fp32);
  Value* infinite = ops::logical_and(ops::logical_not(ops::is_finite(x)), ops::equal(x, x));
  Value* zero = ops::constant_like(x, 0);
  if (call.integer("detect_negative", 1) == 0) infinite = ops::logical_and(infinite, ops::greater(x, zero));
  if (call.integer("detect_positive", 1) == 0) infinite = ops::logical_and(infinite, ops::less(x, zero));
  call.result(0, infinite);
}

void lower_is_nan(LowerCall& call) {
  Value* x = call.operand(0);
  call.result(0, is_nan(kFloatingTypes.contains(x->data_type()) ? x : ops::cast(x, DataType::fp32)));
}

const RuleRegistrations kRegistration{
    {.name = "Neg", .lower = lower_unary<ops::negate>},
    {.name = "Sqrt", .lower = lower_unary<ops::sqrt>},
    {.name = "Exp", .lower = lower_unary<ops::exp>},
    {.name = "Log", .lower = lower_unary<ops::log>},
    {.name = "Reciprocal", .lower = lower_unary<ops::reciprocal>},
    {.name = "Floor", .lower = lower_unary<ops::floor>},
    {.name = "Ceil", .lower = lower_unary<ops::ceil>},
    {.name = "Round", .lower = lower_unary<ops::round>},
    {.name = "Erf", .lower = lower_unary<ops::erf>},
    {.name = "Sin", .lower = lower_unary<ops::sin>},
    {.name = "Cos", .lower = lower_unary<ops::cos>},
    {.name = "Tan", .lower = lower_unary<tangent>},
    {.name = "Tanh", .lower = lower_unary<ops::tanh>},
    {.name = "Sinh", .lower = lower_wide<sinh>},
    {.name = "Cosh", .lower = lower_wide<cosh>},
    {.name = "Asinh", .lower = lower_wide<asinh>},
    {.name = "Acosh", .lower = lower_wide<acosh>},
    {.name = "Atanh", .lower = lower_wide<atanh>},
    {.name = "Atan", .lower = lower_wide<atan>},
    {.name = "Asin", .lower = lower_wide<asin>},
    {.name = "Acos", .lower = lower_wide<acos>},
    {.name = "Sigmoid", .lower = lower_unary<ops::sigmoid>},
    {.name = "Softsign", .lower = lower_unary<softsign>},
    {.name = "Softplus", .lower = lower_unary<ops::softplus>},
    {.name = "HardSwish", .lower = lower_unary<ops::hard_swish>},
    {.name = "Mish", .lower = lower_unary<ops::mish>},
    {.name = "IsNaN", .lower = lower_is_nan},
    {.name = "IsInf", .lower = lower_is_infinite},
    // Of integers without sign they have nothing to do, or little.
    {.name = "Abs",
     .lower =
         [](LowerCall& call) {
           const DataType type = call.type(0).data_type;
           const bool is_unsigned = traits_of(type).kind == TypeKind::unsigned_integer;
           Value* x = call.operand(0);
           call.result(0, is_unsigned ? x : from_computing(ops::absolute(to_computing(x)), type));
         }},
    {.name = "Sign",
     .lower =
         [](LowerCall& call) {
           Value* x = call.operand(0);
           const DataType type = x->data_type();
           const bool is_unsigned = traits_of(type).kind == TypeKind::unsigned_integer;
           Value* sign = is_unsigned ? ops::cast(x, DataType::boolean) : ops::sign(to_computing(x));
           call.result(0, ops::cast(sign, type));
         }},
};

}  // namespace
}  // namespace tessera::onnx
