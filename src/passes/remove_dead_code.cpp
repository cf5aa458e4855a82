#include <algorithm>

#include "passes/passes.h"

namespace tessera::passes {

bool remove_dead_code(Graph& graph, const PassContext&) {
  bool changed = false;
  for (auto position = graph.nodes().end(); position != graph.nodes().begin();) {
    Node* node = std::prev(position)->get();
    const auto& outputs = node->outputs();
    const bool used =
        std::any_of(outputs.begin(), outputs.end(), [&](const auto& v) { return graph.is_used(v.get()); });
    if (used) {
      --position;
    } else {
      graph.erase(node);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tessera::passes
