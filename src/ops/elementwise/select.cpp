#include "tessera/base/elements.h"

#include "ops/elementwise/elementwise.h"
#include "ops/movement/strided.h"

namespace tessera::ops {
namespace {

void reference_select(const ReferenceCall& call) {
  Tensor& output = *call.outputs[0];
  const Shape& shape = output.shape();
  const auto condition = call.inputs[0]->data<bool>();
  int64_t position = 0;
  walk(shape,
       {broadcast_strides(call.inputs[0]->shape(), shape), broadcast_strides(call.inputs[1]->shape(), shape),
        broadcast_strides(call.inputs[2]->shape(), shape)},
       [&](const std::vector<int64_t>& offsets) {
         const size_t chosen = condition[static_cast<size_t>(offsets[0])] ? 1 : 2;
         copy_run(output.data_type(), call.inputs[chosen]->raw(), offsets[chosen], output.raw(), position++,
                  1);
       });
}

std::vector<Value*> gradient_select(const GradientCall& call) {
  Value* condition = call.input(0);
  return {nullptr, reduce_to_shape(select_or_zero(condition, call.gradient()), call.input(1)->shape()),
          reduce_to_shape(zero_or_select(condition, call.gradient()), call.input(2)->shape())};
}

OperatorExample example_select(Shape condition, Shape a, Shape b, DataType type = DataType::fp32) {
  return {.inputs = {{std::move(condition), 0, 1, DataType::boolean},
                     {std::move(a), -2, 2, type},
                     {std::move(b), -2, 2, type}},
          .attributes = {}};
}

const OperatorRegistration kRegistration{{
    .name = "select",
    .documentation =
        "y = when_true where the condition holds, else when_false; all three broadcast as in NumPy. "
        "What is not chosen may be NaN or infinite.",
    .operator_class = OperatorClass::elementwise,
    .traits = {.low_precision = LowPrecision::follows},
    .broadcasts = true,
    .inputs = {{.name = "condition", .types = kBooleanTypes, .type_variable = ""},
               {.name = "when_true", .types = kAnyTypes},
               {.name = "when_false", .types = kAnyTypes}},
    .attributes = {},
    .outputs = {"y"},
    .infer = [](const InferenceCall& call) { return infer_broadcast(call, call.input(1).data_type); },
    .gradient = gradient_select,
    .flops = {},
    .reference = reference_select,
    .examples = {example_select({3, 5}, {3, 5}, {3, 5}), example_select({7}, {4, 7}, {}),
                 example_select({2, 1, 3}, {1}, {5, 1}), example_select({}, {}, {}),
                 example_select({9}, {9}, {}, DataType::int64)},
    // For devices that evaluate clusters of primitives.
    .scalar = [](std::span<const double> x, const Attributes&) { return x[0] != 0 ? x[1] : x[2]; },
    .decompose = {},
}};

}  // namespace
}  // namespace tessera::ops
