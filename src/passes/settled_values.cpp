#include "tessera/passes/settled_values.h"

#include <algorithm>

namespace tessera {

std::unordered_set<const Value*> settled_values(const Graph& graph, bool frozen) {
  std::unordered_set<const Value*> settled;
  for (const auto& input : graph.inputs()) {
    if (input->role() == InputRole::constant || (frozen && input->role() != InputRole::input))
      settled.insert(input.get());
  }
  for (const auto& node : graph.nodes()) {
    const auto& inputs = node->inputs();
    const auto is_settled = [&](const Value* input) { return settled.contains(input); };
    if (!std::all_of(inputs.begin(), inputs.end(), is_settled)) continue;
    for (const auto& output : node->outputs()) settled.insert(output.get());
  }
  return settled;
}

}  // namespace tessera
