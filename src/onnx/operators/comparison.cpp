// Equal, Less, Greater, LessOrEqual, GreaterOrEqual, And, Or, Xor, Not, Where.
#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

using Binary = Value* (*)(Value*, Value*);

// uint64 values as int64 in the same order.
Value* comparable(Value* x) {
  Value* computing = to_computing(x);
  if (x->data_type() != DataType::uint64) return computing;
  return ops::add(
      computing, ops::constant(x->graph(), Tensor::from<int64_t>({}, {std::numeric_limits<int64_t>::min()})));
}

template <Binary function>
void lower_comparison(LowerCall& call) {
  call.result(0, function(comparable(call.operand(0)), comparable(call.operand(1))));
}

template <Binary function>
void lower_logical(LowerCall& call) {
  call.result(0, function(call.operand(0), call.operand(1)));
}

void evaluate_equal(HostCall& call) {
  const TextTensor& a = call.text_tensor(0);
  const TextTensor& b = call.text_tensor(1);
  Tensor result(DataType::boolean, broadcast_shapes(a.shape, b.shape));
  const auto place = [&](const TextTensor& x, int64_t flat) {
    const std::vector<int64_t> strides = row_major_strides(x.shape);
    int64_t at = 0;
    for (size_t axis = result.shape().size(), own = x.shape.size(); own > 0;) {
      const int64_t extent = result.shape()[--axis];
      if (x.shape[--own] != 1) at += flat % extent * strides[own];
      flat /= extent;
    }
    return static_cast<size_t>(at);
  };
  for (int64_t i = 0; i < result.size(); ++i)
    result.set(i, a.values[place(a, i)] == b.values[place(b, i)] ? 1 : 0);
  call.result(0, result);
}

const RuleRegistrations kRegistration{
    {.name = "Equal", .lower = lower_comparison<ops::equal>, .evaluate = evaluate_equal},
    {.name = "Less", .lower = lower_comparison<ops::less>},
    {.name = "Greater", .lower = lower_comparison<ops::greater>},
    {.name = "LessOrEqual", .lower = lower_comparison<ops::less_equal>},
    {.name = "GreaterOrEqual", .lower = lower_comparison<ops::greater_equal>},
    {.name = "And", .lower = lower_logical<ops::logical_and>},
    {.name = "Or", .lower = lower_logical<ops::logical_or>},
    {.name = "Xor", .lower = lower_logical<ops::not_equal>},
    {.name = "Not",
     .since = 1,
     .lower = [](LowerCall& call) { call.result(0, ops::logical_not(call.operand(0))); }},
    {.name = "Where",
     .lower =
         [](LowerCall& call) {
           call.result(0, ops::select(call.operand(0), call.operand(1), call.operand(2)));
         }},
};

}  // namespace
}  // namespace tessera::onnx
