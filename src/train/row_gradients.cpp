#include "train/row_gradients.h"

#include "tessera/base/error.h"

namespace tessera::train {

RowReads row_reads(const nn::Variable& variable, const Value* table) {
  RowReads reads;
  for (const Use& use : table->uses()) {
    const Node& node = *use.node;
    const bool gathers =
        node.operator_name() == "gather" && use.index == 0 && node.attributes().integer("axis") == 0;
    require(gathers, ErrorCode::invalid_argument,
            "'{}' is updated by rows, so that nothing but ops::gather along its first axis may read it; '{}' "
            "({}) does",
            variable.name, node.name(), node.operator_name());
    reads.parts.push_back(node.output());
    reads.indices.push_back(node.input(1));
  }
  return reads;
}

ops::CombinedRows combined_rows(const Value* table, const std::vector<Value*>& indices,
                                const std::vector<Value*>& gradients) {
  std::vector<Value*> places;
  std::vector<Value*> rows;
  for (size_t i = 0; i < indices.size(); ++i) {
    SymbolicShape shape = table->shape();
    shape[0] = element_count(indices[i]->shape());
    places.push_back(ops::cast(ops::reshape(indices[i], {shape[0]}), DataType::int32));
    rows.push_back(ops::cast(ops::reshape(gradients[i], shape), DataType::fp32));
  }
  if (places.size() == 1) return ops::combine_rows(places[0], rows[0]);
  return ops::combine_rows(ops::concat(places, 0), ops::concat(rows, 0));
}

}  // namespace tessera::train
