// Which nodes clusters are made of.
#pragma once

#include "tessera/graph/graph.h"

namespace tessera::passes {

// Whether the node is a reduction that a cluster may end with.
bool ends_cluster(const Node& node);
// Copied into every cluster that reads it: it costs nothing there.
bool is_free(const Node& node);
// Whether the node may stand anywhere in a cluster.
bool is_elementwise(const Node& node);

}  // namespace tessera::passes
