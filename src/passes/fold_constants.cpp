// Computes at compile time what depends on constants alone.
#include <algorithm>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

// Larger results stay nodes: the device computes them once, in its own memory.
constexpr int64_t kMaximumElements = 4096;
// But of whole numbers, such as the places that a gather reads, which other passes look at.
constexpr int64_t kMaximumIndices = 65536;

bool is_constant(const Value* value) {
  return value->producer() != nullptr && value->producer()->operator_name() == "constant";
}

bool can_fold(const Node& node) {
  // What other ranks give is not known here.
  if (node.schema().operator_class == OperatorClass::communication) return false;
  if (node.inputs().empty() || !std::all_of(node.inputs().begin(), node.inputs().end(), is_constant))
    return false;
  return std::all_of(node.outputs().begin(), node.outputs().end(), [](const auto& output) {
    const TensorType& type = output->type();
    return type.is_static() &&
           type.element_count() <= (is_floating(type.data_type) ? kMaximumElements : kMaximumIndices);
  });
}

}  // namespace

bool fold_constants(Graph& graph, const PassContext&) {
  bool changed = false;
  for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
    Node* node = (position++)->get();
    if (!can_fold(*node)) continue;
    std::vector<const Tensor*> inputs;
    for (const Value* input : node->inputs())
      inputs.push_back(&input->producer()->attributes().tensor("value"));
    const std::vector<Tensor> outputs = run_reference(*node, inputs);
    const InsertionPoint here(graph, node);
    for (size_t i = 0; i < outputs.size(); ++i) {
      graph.replace_all_uses(node->output(i), ops::constant(graph, outputs[i]));
    }
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
