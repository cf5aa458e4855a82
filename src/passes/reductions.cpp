#include "passes/reductions.h"

#include <algorithm>

#include "tessera/passes/readiness.h"

namespace tessera::passes {

std::vector<Node*> sized_collectives(const Graph& graph) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) {
    const bool has_sizes = std::all_of(node->inputs().begin(), node->inputs().end(),
                                       [](const Value* input) { return input->type().is_static(); });
    if (is_collective(*node) && has_sizes) nodes.push_back(node.get());
  }
  return nodes;
}

}  // namespace tessera::passes
