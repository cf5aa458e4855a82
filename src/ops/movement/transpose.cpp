#include "tessera/base/permutation.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/movement/strided.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_transpose(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  const std::vector<int64_t>& permutation = call.attributes.integers("permutation");
  std::vector<bool> seen(x.shape.size(), false);
  TensorType y{x.data_type, {}};
  for (int64_t axis : permutation) {
    const bool fresh = axis >= 0 && axis < x.rank() && !seen[static_cast<size_t>(axis)];
    call.require(fresh, "the permutation must name each axis of " + to_string(x.shape) + " once, from 0");
    seen[static_cast<size_t>(axis)] = true;
    y.shape.push_back(x.shape[static_cast<size_t>(axis)]);
  }
  call.require(y.rank() == x.rank(),
               "the permutation names " + std::to_string(y.rank()) + " axes of " + std::to_string(x.rank()));
  return {y};
}

void reference_transpose(const ReferenceCall& call) {
  const std::vector<int64_t> source = row_major_strides(call.inputs[0]->shape());
  const Shape& shape = call.outputs[0]->shape();
  StridedView from;
  for (int64_t axis : call.attributes().integers("permutation")) {
    from.strides.push_back(source[static_cast<size_t>(axis)]);
  }
  copy_elements(*call.inputs[0], from, *call.outputs[0], {0, row_major_strides(shape)}, shape);
}

std::vector<Value*> gradient_transpose(const GradientCall& call) {
  return {transpose(call.gradient(), inverse_permutation(call.node.attributes().integers("permutation")))};
}

OperatorExample example_transpose(Shape shape, std::initializer_list<int64_t> permutation,
                                  DataType type = DataType::fp32) {
  return {.inputs = {{std::move(shape), -2, 2, type}}, .attributes = {{"permutation", permutation}}};
}

OperatorSchema schema_transpose() {
  OperatorSchema schema;
  schema.name = "transpose";
  schema.documentation = "Axis i of y is axis permutation[i] of x.";
  schema.operator_class = OperatorClass::movement;
  schema.inputs = {{.name = "x", .types = kAnyTypes}};
  schema.attributes = {{.name = "permutation",
                        .kind = AttributeKind::integers,
                        .default_value = {},
                        .documentation = "each axis of x once"}};
  schema.outputs = {"y"};
  schema.infer = infer_transpose;
  schema.gradient = gradient_transpose;
  schema.reference = reference_transpose;
  schema.examples = {
      example_transpose({3, 5}, {1, 0}),       example_transpose({2, 3, 4, 5}, {0, 2, 3, 1}),
      example_transpose({2, 3, 5}, {2, 0, 1}), example_transpose({7}, {0}),
      example_transpose({0, 3}, {1, 0}),       example_transpose({3, 5}, {1, 0}, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_transpose()};

}  // namespace
}  // namespace tessera::ops
