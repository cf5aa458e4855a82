#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/movement/strided.h"

namespace tessera::ops {
namespace {

void reference_broadcast_to(const ReferenceCall& call) {
  const Shape& shape = call.outputs[0]->shape();
  copy_elements(*call.inputs[0], {0, broadcast_strides(call.inputs[0]->shape(), shape)}, *call.outputs[0],
                {0, row_major_strides(shape)}, shape);
}

OperatorExample example_broadcast_to(Shape from, const Shape& to, DataType type = DataType::fp32) {
  return {.inputs = {{std::move(from), -2, 2, type}}, .attributes = {{"shape", to_symbolic(to)}}};
}

const OperatorRegistration kRegistration{{
    .name = "broadcast_to",
    .documentation = "x repeated along new leading axes and along axes of extent 1, as NumPy broadcasts.",
    .operator_class = OperatorClass::movement,
    .traits = {.joins_clusters = true},
    .inputs = {{.name = "x", .types = kAnyTypes}},
    .attributes = {{.name = "shape",
                    .kind = AttributeKind::shape,
                    .default_value = {},
                    .documentation = "of the result"}},
    .outputs = {"y"},
    .infer = [](const InferenceCall& call) -> std::vector<TensorType> {
      const SymbolicShape& shape = call.attributes.shape("shape");
      const SymbolicShape& own = call.input(0).shape;
      call.require(own.size() <= shape.size() && broadcast_shapes(own, shape) == shape,
                   to_string(own) + " does not broadcast to " + to_string(shape));
      return {{call.input(0).data_type, shape}};
    },
    .gradient = [](const GradientCall& call) -> std::vector<Value*> {
      return {reduce_to_shape(call.gradient(), call.input(0)->shape())};
    },
    .flops = {},
    .reference = reference_broadcast_to,
    .examples = {example_broadcast_to({5}, {3, 5}), example_broadcast_to({3, 1}, {3, 5}),
                 example_broadcast_to({}, {4}), example_broadcast_to({2, 1, 3}, {4, 2, 7, 3}),
                 example_broadcast_to({1, 3}, {0, 3}), example_broadcast_to({3}, {2, 3}, DataType::int64)},
    .scalar = {},
    .decompose = {},
}};

}  // namespace
}  // namespace tessera::ops
