#include "passes/late_readers.h"

#include <algorithm>

#include "tessera/graph/operator.h"

namespace tessera::passes {
namespace {

bool shows(const Value* value, const Value* y) {
  while (value != y && value->producer() != nullptr && is_view(*value->producer()))
    value = value->producer()->input(0);
  return value == y;
}

// A view of y, of the copy.
Value* view_of(Graph& graph, const Value* view, const Value* y, Value* copy) {
  if (view == y) return copy;
  const Node& node = *view->producer();
  std::vector<Value*> inputs = node.inputs();
  inputs[0] = view_of(graph, inputs[0], y, copy);
  return graph.add_node(node.operator_name(), node.operands(inputs), node.attributes())->output();
}

}  // namespace

bool is_view(const Node& node) {
  return node.schema().traits.view && node.outputs().size() == 1;
}

std::vector<Node*> late_readers(const Dependence& dependence, const Node& keeper,
                                const std::vector<Node*>& readers) {
  std::vector<const Node*> early;
  std::vector<Node*> late;
  for (Node* reader : readers) {
    if (dependence.depends(keeper, *reader)) {
      early.push_back(reader);
    } else if (std::find(late.begin(), late.end(), reader) == late.end()) {
      late.push_back(reader);
    }
  }
  if (early.empty()) return {};
  for (const Node* reader : late) {
    const auto is_needed = [&](const Node* node) { return dependence.depends(*reader, *node); };
    if (!std::all_of(early.begin(), early.end(), is_needed)) return {};
    // What the value is made of is still there only while the keeper waits.
    if (!reader->stands_before(keeper)) return {};
  }
  return late;
}

void recompute_for(Graph& graph, const Value* y, Node* reader, const std::function<Value*()>& make) {
  const InsertionPoint here(graph, reader);
  graph.set_name_scope(y->name() + ".recomputed");
  Value* copy = make();
  for (size_t i = 0; i < reader->inputs().size(); ++i) {
    if (shows(reader->input(i), y)) graph.set_input(reader, i, view_of(graph, reader->input(i), y, copy));
  }
  graph.set_name_scope("");
}

}  // namespace tessera::passes
