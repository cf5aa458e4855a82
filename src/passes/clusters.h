// Which nodes clusters are made of.
#pragma once

#include "tessera/graph/graph.h"
#include "tessera/passes/pass.h"

namespace tessera::passes {

// Whether the node is a reduction that a cluster may end with.
bool ends_cluster(const Node& node);
// Copied into every cluster that reads it: it costs nothing there.
bool is_free(const Node& node);
// Whether the node may stand anywhere in a cluster.
bool is_elementwise(const Node& node);
// Whether the device's clusters take the node's types.
bool is_taken(const Node& node, const PassTarget& target);

}  // namespace tessera::passes
