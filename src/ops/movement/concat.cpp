#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/axes.h"
#include "ops/movement/contiguous.h"
#include "ops/movement/strided.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_concat(const InferenceCall& call) {
  TensorType y = call.input(0);
  const auto axis = static_cast<size_t>(normalized_axis(call.attributes.integer("axis"), y.rank()));
  for (const TensorType& input : call.inputs.subspan(1)) {
    SymbolicShape expected = y.shape;
    if (input.rank() == y.rank()) expected[axis] = input.shape[axis];
    call.require(expected == input.shape, to_string(input.shape) + " does not fit " +
                                              to_string(call.input(0).shape) + " outside axis " +
                                              std::to_string(axis));
    y.shape[axis] = y.shape[axis] + input.shape[axis];
  }
  return {y};
}

void reference_concat(const ReferenceCall& call) {
  Tensor& output = *call.outputs[0];
  const auto axis = static_cast<size_t>(
      normalized_axis(call.attributes().integer("axis"), static_cast<int64_t>(output.shape().size())));
  StridedView to{0, row_major_strides(output.shape())};
  for (const Tensor* input : call.inputs) {
    copy_elements(*input, {0, row_major_strides(input->shape())}, output, to, input->shape());
    to.offset += input->shape()[axis] * to.strides[axis];
  }
}

std::vector<int64_t> operand_offsets(const Node& node) {
  const TensorType& y = node.output()->type();
  const auto axis = static_cast<size_t>(normalized_axis(node.attributes().integer("axis"), y.rank()));
  std::vector<int64_t> extents;
  for (const Value* input : node.inputs()) extents.push_back(input->shape()[axis].value());
  return contiguous_parts(y.data_type, y.static_shape(), axis, extents);
}

// Each input's part of the gradient. Only the last part may have a symbolic extent along the axis.
std::vector<Value*> gradient_concat(const GradientCall& call) {
  Value* dy = call.gradient();
  const int64_t rank = dy->type().rank();
  const auto axis = static_cast<size_t>(normalized_axis(call.node.attributes().integer("axis"), rank));
  std::vector<int64_t> starts(static_cast<size_t>(rank), 0);
  std::vector<int64_t> limits(static_cast<size_t>(rank), kWholeAxis);
  std::vector<Value*> gradients;
  for (Value* input : call.node.inputs()) {
    const bool last = gradients.size() + 1 == call.node.inputs().size();
    limits[axis] = last ? kWholeAxis : starts[axis] + input->shape()[axis].value();
    gradients.push_back(slice(dy, starts, limits));
    starts[axis] = limits[axis];
  }
  return gradients;
}

OperatorExample example_concat(const std::vector<Shape>& shapes, int axis, DataType type = DataType::fp32) {
  OperatorExample result{.inputs = {}, .attributes = {{"axis", axis}}};
  for (const Shape& shape : shapes) result.inputs.push_back({shape, -2, 2, type});
  return result;
}

OperatorSchema schema_concat() {
  OperatorSchema schema;
  schema.name = "concat";
  schema.documentation = "The inputs one after the other along an axis; they agree in all other extents.";
  schema.operator_class = OperatorClass::movement;
  schema.traits = {.any_axis_order = true};
  schema.inputs = {{.name = "inputs", .types = kAnyTypes, .variadic = true}};
  schema.attributes = {{.name = "axis",
                        .kind = AttributeKind::integer,
                        .default_value = {},
                        .documentation = "negative from the end"}};
  schema.outputs = {"y"};
  schema.infer = infer_concat;
  schema.gradient = gradient_concat;
  schema.reference = reference_concat;
  schema.operand_offsets = operand_offsets;
  schema.examples = {example_concat({{3, 5}, {3, 2}}, 1),
                     example_concat({{2, 3, 5}, {1, 3, 5}, {4, 3, 5}}, 0), example_concat({{3, 5}}, 0),
                     example_concat({{2, 3}, {2, 0}, {2, 4}}, -1),
                     example_concat({{3}, {4}}, 0, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_concat()};

}  // namespace
}  // namespace tessera::ops
