// Equal, Less, Greater, LessOrEqual, GreaterOrEqual, And, Or, Xor, Not, Where.
#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

using Binary = Value* (*)(Value*, Value*);

template <Binary function>
void lower_comparison(LowerCall& call) {
  call.result(0, function(to_comparable(call.operand(0)), to_comparable(second_operand(call))));
}

template <Binary function>
void lower_logical(LowerCall& call) {
  call.result(0, function(call.operand(0), second_operand(call)));
}

void evaluate_equal(HostCall& call) {
  const TextTensor& a = call.text_tensor(0);
  const TextTensor& b = call.text_tensor(1);
  Tensor result(DataType::boolean, broadcast_shapes(a.shape, b.shape));
  const auto text = [&](const TextTensor& x, int64_t i) {
    return x.values[static_cast<size_t>(broadcast_source(x.shape, result.shape(), i))];
  };
  for (int64_t i = 0; i < result.size(); ++i) result.set(i, text(a, i) == text(b, i) ? 1 : 0);
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
