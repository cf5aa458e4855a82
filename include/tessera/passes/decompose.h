// Replacing composite operators by the simpler operators that they stand for.
#pragma once

#include "tessera/graph/graph.h"

namespace tessera {

// Replaces every node of a composite operator by its decomposition, as often as it takes; the values keep
// their names where the operator had one output. Bodies of fused nodes are left alone. Returns whether it
// changed the graph.
bool decompose_composites(Graph& graph);
// The same for one node.
void decompose(Graph& graph, Node* node);

}  // namespace tessera
