#include <algorithm>

#include "tessera/base/elements.h"
#include "tessera/ops/functions.h"

#include "ops/axes.h"
#include "ops/indexing/indexing.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_gather(const InferenceCall& call) {
  const TensorType& table = call.input(0);
  const SymbolicShape& indices = call.input(1).shape;
  const int64_t axis = normalized_axis(call.attributes.integer("axis"), table.rank());
  TensorType y = table;
  y.shape.erase(y.shape.begin() + axis);
  y.shape.insert(y.shape.begin() + axis, indices.begin(), indices.end());
  return {y};
}

void reference_gather(const ReferenceCall& call) {
  const Tensor& table = *call.inputs[0];
  Tensor& output = *call.outputs[0];
  const auto axis = static_cast<size_t>(
      normalized_axis(call.attributes().integer("axis"), static_cast<int64_t>(table.shape().size())));
  const std::vector<int64_t> rows = read_indices(*call.inputs[1], table.shape()[axis], call.node);
  // table: [outer, extent, inner], output: [outer, rows, inner]
  const int64_t inner = row_major_strides(table.shape())[axis];
  const int64_t extent = table.shape()[axis];
  const int64_t outer = rows.empty() || inner == 0 ? 0 : output.size() / inner / std::ssize(rows);
  int64_t position = 0;
  for (int64_t block = 0; block < outer; ++block) {
    for (const int64_t row : rows) {
      copy_run(table.data_type(), table.raw(), (block * extent + row) * inner, output.raw(), position, inner);
      position += inner;
    }
  }
}

// Rows are summed along the first axis, so that the gathered axes come there and go back.
std::vector<Value*> gradient_gather(const GradientCall& call) {
  Value* table = call.input(0);
  Value* indices = call.input(1);
  const int64_t axis = normalized_axis(call.node.attributes().integer("axis"), table->type().rank());
  const Dimension& extent = table->shape()[static_cast<size_t>(axis)];
  if (axis == 0) return {scatter_add(indices, call.gradient(), extent), nullptr};
  const int64_t gathered = indices->type().rank();
  std::vector<int64_t> to_front;
  for (int64_t i = 0; i < gathered; ++i) to_front.push_back(axis + i);
  for (int64_t i = 0; i < call.gradient()->type().rank(); ++i) {
    if (i < axis || i >= axis + gathered) to_front.push_back(i);
  }
  std::vector<int64_t> back;
  for (int64_t i = 0; i < table->type().rank(); ++i) back.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
  return {transpose(scatter_add(indices, transpose(call.gradient(), to_front), extent), back), nullptr};
}

// Of the table the rows that are named, or all of it where it has fewer.
double bytes(const Node& node) {
  const auto size = [](const Value* value) { return static_cast<double>(value->type().bytes()); };
  const double rows = size(node.output());
  return std::min(size(node.input(0)), rows) + size(node.input(1)) + rows;
}

OperatorExample example_gather(Shape table, Shape indices, int axis, int64_t last, DataType index_type,
                               DataType type = DataType::fp32) {
  return {.inputs = {{std::move(table), -2, 2, type},
                     {std::move(indices), 0, static_cast<double>(last), index_type}},
          .attributes = {{"axis", axis}}};
}

OperatorSchema schema_gather() {
  OperatorSchema schema;
  schema.name = "gather";
  schema.documentation =
      "The rows of the table that the indices name, along an axis: y has the table's shape with the indices' "
      "shape in place of the axis. With axis 0 the look-up of embeddings. Indices count from 0; others are "
      "an error in the reference and undefined rows on other devices.";
  schema.operator_class = OperatorClass::indexing;
  schema.traits = {.low_precision = LowPrecision::follows, .any_axis_order = true};
  schema.inputs = {{.name = "table", .types = kAnyTypes},
                   {.name = "indices", .types = kIndexTypes, .type_variable = ""}};
  schema.attributes = {{.name = "axis",
                        .kind = AttributeKind::integer,
                        .default_value = 0,
                        .documentation = "of the table; negative from the end"}};
  schema.outputs = {"y"};
  schema.infer = infer_gather;
  schema.gradient = gradient_gather;
  schema.bytes = bytes;
  schema.reference = reference_gather;
  schema.examples = {example_gather({7, 3}, {5}, 0, 6, DataType::int32),
                     example_gather({7, 3}, {2, 4}, 0, 6, DataType::int64),
                     example_gather({2, 5, 3}, {4}, 1, 4, DataType::int32),
                     example_gather({2, 5, 3}, {2, 2}, -1, 2, DataType::int64),
                     example_gather({7}, {}, 0, 6, DataType::int32),
                     example_gather({7, 3}, {0}, 0, 6, DataType::int32),
                     example_gather({4, 3}, {6}, 0, 3, DataType::int32, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_gather()};

}  // namespace
}  // namespace tessera::ops
