// What clusters are made of.
#pragma once

#include "tessera/graph/graph.h"

namespace tessera::passes {

// A reduction that a cluster may end with.
bool ends_cluster(const Node& node);

}  // namespace tessera::passes
