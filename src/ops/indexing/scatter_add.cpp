#include <algorithm>

#include "tessera/ops/functions.h"

#include "ops/indexing/indexing.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_scatter_add(const InferenceCall& call) {
  const SymbolicShape& indices = call.input(0).shape;
  const TensorType& updates = call.input(1);
  const SymbolicShape& extent = call.attributes.shape("extent");
  call.require(extent.size() == 1, "extent must be one dimension, got " + to_string(extent));
  const bool fits = updates.shape.size() >= indices.size() &&
                    std::equal(indices.begin(), indices.end(), updates.shape.begin());
  call.require(fits, "the updates' shape " + to_string(updates.shape) +
                         " must begin with the indices' shape " + to_string(indices));
  TensorType y{updates.data_type, extent};
  y.shape.insert(y.shape.end(), updates.shape.begin() + std::ssize(indices), updates.shape.end());
  return {y};
}

void reference_scatter_add(const ReferenceCall& call) {
  const Tensor& updates = *call.inputs[1];
  Tensor& output = *call.outputs[0];
  const int64_t extent = output.shape()[0];
  const std::vector<int64_t> rows = read_indices(*call.inputs[0], extent, call.node);
  const int64_t inner = extent == 0 ? 0 : output.size() / extent;
  std::vector<double> sums(static_cast<size_t>(output.size()), 0);
  for (int64_t row = 0; row < std::ssize(rows); ++row) {
    for (int64_t i = 0; i < inner; ++i) {
      sums[static_cast<size_t>(rows[static_cast<size_t>(row)] * inner + i)] += updates.at(row * inner + i);
    }
  }
  output = Tensor::from_doubles(output.data_type(), output.shape(), sums);
}

std::vector<Value*> gradient_scatter_add(const GradientCall& call) {
  return {nullptr, gather(call.gradient(), call.input(0))};
}

OperatorExample example_scatter_add(Shape indices, Shape updates, int64_t extent, DataType index_type) {
  return {.inputs = {{std::move(indices), 0, static_cast<double>(extent - 1), index_type},
                     {std::move(updates), -2, 2}},
          .attributes = {{"extent", SymbolicShape{extent}}}};
}

OperatorSchema schema_scatter_add() {
  OperatorSchema schema;
  schema.name = "scatter_add";
  schema.documentation =
      "Rows of zeros to which the updates are added: y[indices[i], ...] += updates[i, ...], where i runs "
      "over "
      "all axes of the indices; equal indices add up. The gradient of gather.";
  schema.operator_class = OperatorClass::indexing;
  schema.inputs = {{.name = "indices", .types = kIndexTypes, .type_variable = ""},
                   {.name = "updates", .types = kFloatingTypes | kIndexTypes}};
  schema.attributes = {{.name = "extent",
                        .kind = AttributeKind::shape,
                        .default_value = {},
                        .documentation = "how many rows y has, as a shape of one axis"}};
  schema.outputs = {"y"};
  schema.infer = infer_scatter_add;
  schema.gradient = gradient_scatter_add;
  // One addition for each element of the updates.
  schema.flops = [](const Node& node) { return static_cast<double>(node.input(1)->type().element_count()); };
  schema.reference = reference_scatter_add;
  schema.examples = {example_scatter_add({5}, {5, 3}, 4, DataType::int32),
                     example_scatter_add({2, 3}, {2, 3, 5}, 7, DataType::int64),
                     example_scatter_add({9}, {9}, 3, DataType::int32),
                     example_scatter_add({}, {3}, 2, DataType::int32),
                     example_scatter_add({0}, {0, 3}, 2, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_scatter_add()};

}  // namespace
}  // namespace tessera::ops
