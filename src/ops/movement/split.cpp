#include <algorithm>
#include <numeric>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/axes.h"
#include "ops/movement/contiguous.h"
#include "ops/movement/strided.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_split(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  const int64_t axis = normalized_axis(call.attributes.integer("axis"), x.rank());
  const Dimension& extent = x.shape[static_cast<size_t>(axis)];
  const std::vector<int64_t>& sizes = call.attributes.integers("sizes");
  const bool positive = std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
  const Dimension sum = std::accumulate(sizes.begin(), sizes.end(), Dimension(0));
  call.require(!sizes.empty() && positive && extent == sum,
               "the sizes must not be negative and must add up to the extent " + extent.to_string() +
                   " of axis " + std::to_string(axis) + "; they add up to " + sum.to_string());
  std::vector<TensorType> parts(sizes.size(), x);
  for (size_t i = 0; i < sizes.size(); ++i) parts[i].shape[static_cast<size_t>(axis)] = sizes[i];
  return parts;
}

void reference_split(const ReferenceCall& call) {
  const Tensor& input = *call.inputs[0];
  const auto axis = static_cast<size_t>(
      normalized_axis(call.attributes().integer("axis"), static_cast<int64_t>(input.shape().size())));
  StridedView from{0, row_major_strides(input.shape())};
  for (Tensor* output : call.outputs) {
    copy_elements(input, from, *output, {0, row_major_strides(output->shape())}, output->shape());
    from.offset += output->shape()[axis] * from.strides[axis];
  }
}

std::vector<int64_t> result_offsets(const Node& node) {
  const TensorType& x = node.input(0)->type();
  const int64_t axis = normalized_axis(node.attributes().integer("axis"), x.rank());
  return contiguous_parts(x.data_type, x.static_shape(), static_cast<size_t>(axis),
                          node.attributes().integers("sizes"));
}

std::vector<Value*> gradient_split(const GradientCall& call) {
  std::vector<Value*> parts;
  for (size_t i = 0; i < call.node.outputs().size(); ++i) {
    parts.push_back(call.gradient(i) != nullptr ? call.gradient(i) : zeros_like(call.output(i)));
  }
  return {concat(parts, call.node.attributes().integer("axis"))};
}

OperatorExample example_split(Shape shape, std::initializer_list<int64_t> sizes, int axis,
                              DataType type = DataType::fp32) {
  return {.inputs = {{std::move(shape), -2, 2, type}}, .attributes = {{"sizes", sizes}, {"axis", axis}}};
}

OperatorSchema schema_split() {
  OperatorSchema schema;
  schema.name = "split";
  schema.documentation = "Consecutive parts of x along an axis, one output for each size.";
  schema.operator_class = OperatorClass::movement;
  schema.traits = {.any_axis_order = true};
  schema.inputs = {{.name = "x", .types = kAnyTypes}};
  schema.attributes = {{.name = "sizes",
                        .kind = AttributeKind::integers,
                        .default_value = {},
                        .documentation = "extents of the parts; they add up to that of x"},
                       {.name = "axis",
                        .kind = AttributeKind::integer,
                        .default_value = {},
                        .documentation = "negative from the end"}};
  schema.outputs = {"y"};
  schema.infer = infer_split;
  schema.gradient = gradient_split;
  schema.reference = reference_split;
  schema.result_offsets = result_offsets;
  schema.examples = {example_split({3, 7}, {5, 2}, 1), example_split({6, 2, 3}, {1, 2, 3}, 0),
                     example_split({4}, {4}, 0), example_split({2, 5}, {2, 0, 3}, -1),
                     example_split({7}, {3, 4}, 0, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_split()};

}  // namespace
}  // namespace tessera::ops
