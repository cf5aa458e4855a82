// Which nodes need certain others.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::passes {

// Found for all sources in one walk along the graph, with one bit for each at each node. Holds for the graph
// as it was.
class Dependence {
 public:
  Dependence(const Graph& graph, const std::vector<const Node*>& sources);

  // Whether a way leads from `source`, one of the sources, to the node; from itself one does.
  bool depends(const Node& node, const Node& source) const;

 private:
  size_t words_;  // per node
  std::unordered_map<const Node*, size_t> bit_of_;
  std::unordered_map<const Node*, size_t> row_of_;
  std::vector<uint64_t> bits_;
};

}  // namespace tessera::passes
