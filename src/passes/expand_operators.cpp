// Puts simpler operators in the place of elementwise composites, which clusters know no loops for, and of
// what the device has no kernel of its own for.
#include "tessera/graph/operator.h"
#include "tessera/passes/decompose.h"

#include "passes/clusters.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

bool expand_node(Graph& graph, Node* node, const PassContext& context) {
  if (node->schema().decompose && is_elementwise(*node)) {
    decompose(graph, node);
    return true;
  }
  const GraphRule rule = context.target.expansion ? context.target.expansion(*node) : GraphRule();
  if (rule) expand(graph, node, rule);
  return static_cast<bool>(rule);
}

}  // namespace

// What stands for a node may be composite, too.
bool expand_operators(Graph& graph, const PassContext& context) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
      Node* node = (position++)->get();
      again = expand_node(graph, node, context) || again;
    }
    changed = changed || again;
  }
  return changed;
}

}  // namespace tessera::passes
