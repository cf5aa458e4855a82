#include "tessera/passes/settled_values.h"

#include <algorithm>
#include <vector>

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

bool is_settled(const Value& value) {
  std::unordered_set<const Value*> seen{&value};
  std::vector<const Value*> waiting{&value};
  while (!waiting.empty()) {
    const Value* next = waiting.back();
    waiting.pop_back();
    if (next->producer() == nullptr) {
      if (next->role() == InputRole::input) return false;
      continue;
    }
    for (const Value* input : next->producer()->inputs()) {
      if (seen.insert(input).second) waiting.push_back(input);
    }
  }
  return true;
}

}  // namespace tessera
