// What the passes over collectives of many values share.
#pragma once

#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::passes {

// The nodes of that operator that several ranks exchange, where the sizes of their inputs are known.
std::vector<Node*> sized_collectives(const Graph& graph, std::string_view operator_name);

}  // namespace tessera::passes
