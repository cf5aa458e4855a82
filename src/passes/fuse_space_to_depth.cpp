#include <string>
#include <utility>

#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/space_to_depth.h"

#include "passes/passes.h"

namespace tessera::passes {

bool fuse_space_to_depth(Graph& graph, const PassOptions& options) {
  if (!options.space_to_depth) return false;
  std::vector<std::pair<std::string, std::vector<Node*>>> found;
  for (const auto& node : graph.nodes()) {
    if (const auto blocks = match_space_to_depth(node.get())) {
      found.emplace_back("space_to_depth", blocks->nodes);
    } else if (const auto pixels = match_depth_to_space(node.get())) {
      found.emplace_back("depth_to_space", pixels->nodes);
    }
  }
  for (const auto& [kind, nodes] : found) fuse_nodes(graph, kind, nodes, {nodes.back()->output()});
  return !found.empty();
}

}  // namespace tessera::passes
