#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {
namespace {

OperatorExample example_reshape(Shape from, const Shape& to, DataType type = DataType::fp32) {
  return {.inputs = {{std::move(from), -2, 2, type}}, .attributes = {{"shape", to_symbolic(to)}}};
}

const OperatorRegistration kRegistration{{
    .name = "reshape",
    .documentation = "The elements of x, in row-major order, under another shape of as many elements.",
    .operator_class = OperatorClass::movement,
    .traits = {.view = true},
    .inputs = {{.name = "x", .types = kAnyTypes}},
    .attributes = {{.name = "shape",
                    .kind = AttributeKind::shape,
                    .default_value = {},
                    .documentation = "of the result"}},
    .outputs = {"y"},
    .infer = [](const InferenceCall& call) -> std::vector<TensorType> {
      const SymbolicShape& shape = call.attributes.shape("shape");
      const Dimension before = element_count(call.input(0).shape);
      const Dimension after = element_count(shape);
      call.require(before == after, "shape " + to_string(shape) + " holds " + after.to_string() +
                                        " elements, the input " + before.to_string());
      return {{call.input(0).data_type, shape}};
    },
    .gradient = [](const GradientCall& call) -> std::vector<Value*> {
      return {reshape(call.gradient(), call.input(0)->shape())};
    },
    .flops = {},
    .reference =
        [](const ReferenceCall& call) {
          *call.outputs[0] = call.inputs[0]->clone().reshape(call.outputs[0]->shape());
        },
    .examples = {example_reshape({3, 5}, {5, 3}), example_reshape({2, 3, 4}, {6, 4}),
                 example_reshape({1}, {}), example_reshape({0, 3}, {2, 0}),
                 example_reshape({6}, {2, 3}, DataType::int64)},
    .scalar = {},
    .decompose = {},
}};

}  // namespace
}  // namespace tessera::ops
