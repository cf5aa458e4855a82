#include "tessera/base/elements.h"
#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_set_rows(const InferenceCall& call) {
  const TensorType& table = call.input(0);
  const TensorType& indices = call.input(1);
  call.require(table.rank() >= 1, "a scalar has no rows");
  call.require(indices.rank() == 1, "the indices must have one axis, got " + to_string(indices.shape));
  SymbolicShape wanted = table.shape;
  wanted[0] = indices.shape[0];
  call.require(call.input(2).shape == wanted,
               "the rows must be " + to_string(wanted) + ", got " + to_string(call.input(2).shape));
  return {table};
}

void reference_set_rows(const ReferenceCall& call) {
  const Tensor& indices = *call.inputs[1];
  Tensor& output = *call.outputs[0];
  output = call.inputs[0]->clone();
  const int64_t extent = output.shape()[0];
  const int64_t width = extent == 0 ? 0 : output.size() / extent;
  const Tensor& rows = *call.inputs[2];
  for (int64_t place = 0; place < indices.size(); ++place) {
    const auto index = static_cast<int64_t>(indices.at(place));
    require(index < extent, ErrorCode::invalid_argument,
            "set_rows '{}': index {} at place {} is not in [0, {})", call.node.name(), index, place, extent);
    if (index < 0) continue;
    copy_run(rows.data_type(), rows.raw(), place * width, output.raw(), index * width, width);
  }
}

// The table is overwritten where it may be.
double bytes(const Node& node) {
  return static_cast<double>(node.input(1)->type().bytes() + 2 * node.input(2)->type().bytes());
}

OperatorExample example_set_rows(Shape table, int64_t count, DataType index_type,
                                 DataType type = DataType::fp32) {
  Shape rows = table;
  rows[0] = count;
  const auto last = static_cast<double>(table[0] - 1);
  return {.inputs = {{table, -2, 2, type}, {{count}, -1, last, index_type}, {rows, -2, 2, type}}};
}

OperatorSchema schema_set_rows() {
  OperatorSchema schema;
  schema.name = "set_rows";
  schema.documentation =
      "The table with some of its rows replaced: y[indices[i], ...] = rows[i, ...], the last of equal "
      "indices "
      "counting. Rows with a negative index are left out. Costs the rows, not the table, where the table may "
      "be overwritten.";
  schema.operator_class = OperatorClass::indexing;
  schema.inputs = {{.name = "table", .types = kAnyTypes},
                   {.name = "indices", .types = kIndexTypes, .type_variable = ""},
                   {.name = "rows", .types = kAnyTypes}};
  schema.outputs = {"y"};
  schema.infer = infer_set_rows;
  schema.bytes = bytes;
  schema.reference = reference_set_rows;
  schema.examples = {example_set_rows({7, 3}, 5, DataType::int32),
                     example_set_rows({4, 2, 3}, 1, DataType::int64),
                     example_set_rows({5}, 9, DataType::int32), example_set_rows({3, 2}, 0, DataType::int64),
                     example_set_rows({6, 2}, 4, DataType::int64, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_set_rows()};

}  // namespace
}  // namespace tessera::ops
