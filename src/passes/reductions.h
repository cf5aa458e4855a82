// What the passes over collectives of many values share.
#pragma once

#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::passes {

// Of those that several ranks run, the ones the sizes of whose inputs are known.
std::vector<Node*> sized_collectives(const Graph& graph);

}  // namespace tessera::passes
