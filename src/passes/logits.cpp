#include "passes/logits.h"

#include <string>
#include <vector>

#include "tessera/passes/fuse.h"

namespace tessera::passes {

bool is_loss(const Node& node) {
  return node.operator_name() == "cross_entropy" || node.operator_name() == "cross_entropy_gradient";
}

int64_t last_extent(const Value& value) {
  return value.shape().back().value();
}

bool keeps_columns(const Value& reshaped, const Value& value) {
  return reshaped.type().rank() > 0 && last_extent(reshaped) == last_extent(value);
}

bool is_bias(const Value& operand, const Value& value) {
  return operand.data_type() == value.data_type() && is_per_channel(operand, value.shape());
}

bool is_along_columns(const Node& argmax) {
  const int64_t axis = argmax.attributes().integer("axis");
  return axis == -1 || axis + 1 == argmax.input(0)->type().rank();
}

bool sums_rows(const Node& sum) {
  std::vector<int64_t> leading;
  for (int64_t axis = 0; axis + 1 < sum.input(0)->type().rank(); ++axis) leading.push_back(axis);
  return !leading.empty() && sum.attributes().integers("axes") == leading;
}

bool rewrite_products(Graph& graph, const std::function<bool(Node* product)>& rewrite) {
  bool changed = false;
  std::vector<std::string> names;
  for (const Node* node : nodes_of(graph, "matmul")) names.push_back(node->name());
  for (const std::string& name : names) {
    Node* product = producer_of(graph.find(name), "matmul");
    if (product != nullptr) changed |= rewrite(product);
  }
  return changed;
}

}  // namespace tessera::passes
