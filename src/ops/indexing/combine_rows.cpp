#include <unordered_map>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_combine_rows(const InferenceCall& call) {
  const TensorType& indices = call.input(0);
  const TensorType& rows = call.input(1);
  call.require(indices.rank() == 1, "the indices must have one axis, got " + to_string(indices.shape));
  call.require(
      rows.rank() >= 1 && rows.shape[0] == indices.shape[0],
      "each of the " + indices.shape[0].to_string() + " indices needs a row, got " + to_string(rows.shape));
  return {indices, rows};
}

void reference_combine_rows(const ReferenceCall& call) {
  const Tensor& indices = *call.inputs[0];
  const Tensor& rows = *call.inputs[1];
  const int64_t count = indices.size();
  const int64_t width = count == 0 ? 0 : rows.size() / count;
  std::unordered_map<int64_t, int64_t> first_place;
  std::vector<double> sums(static_cast<size_t>(rows.size()), 0);
  for (int64_t place = 0; place < count; ++place) {
    const auto index = static_cast<int64_t>(indices.at(place));
    const auto [first, added] = first_place.emplace(index, place);
    call.outputs[0]->set(place, added ? static_cast<double>(index) : -1);
    for (int64_t i = 0; i < width; ++i)
      sums[static_cast<size_t>(first->second * width + i)] += rows.at(place * width + i);
  }
  *call.outputs[1] = Tensor::from_doubles(rows.data_type(), rows.shape(), sums);
}

OperatorExample example_combine_rows(Shape rows, int64_t last, DataType index_type) {
  return {.inputs = {{{rows[0]}, 0, static_cast<double>(last), index_type}, {rows, -2, 2}}};
}

OperatorSchema schema_combine_rows() {
  OperatorSchema schema;
  schema.name = "combine_rows";
  schema.documentation =
      "Adds up the rows whose indices are equal. Where an index stands for the first time it stays, with the "
      "sum of its rows; its other places become -1, with zeros. So the gradient of an embedding is as large "
      "as the batch, not as the table.";
  schema.operator_class = OperatorClass::indexing;
  schema.inputs = {{.name = "indices", .types = kIndexTypes, .type_variable = "I"},
                   {.name = "rows", .types = kFloatingTypes}};
  schema.outputs = {"first", "sums"};
  schema.infer = infer_combine_rows;
  schema.flops = [](const Node& node) { return static_cast<double>(node.input(1)->type().element_count()); };
  schema.reference = reference_combine_rows;
  schema.examples = {
      example_combine_rows({9, 3}, 3, DataType::int32), example_combine_rows({5, 2, 3}, 6, DataType::int64),
      example_combine_rows({7}, 2, DataType::int32), example_combine_rows({1, 4}, 0, DataType::int64),
      example_combine_rows({0, 3}, 3, DataType::int32)};
  return schema;
}

const OperatorRegistration kRegistration{schema_combine_rows()};

}  // namespace
}  // namespace tessera::ops
