// What the passes over sums of several ranks share.
#pragma once

#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::passes {

// What ranks add up together, where its size is known: the nodes all_reduce that a device exchanges.
std::vector<Node*> sized_reductions(const Graph& graph);

}  // namespace tessera::passes
