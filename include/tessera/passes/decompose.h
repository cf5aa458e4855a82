// Replacing operators by the simpler ones that they stand for.
#pragma once

#include <functional>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

// Appends the node's work to the graph of `inputs`, which stand for the node's own, and returns its outputs.
using GraphRule = std::function<std::vector<Value*>(const Node& node, const std::vector<Value*>& inputs)>;

// Replaces every node of a composite operator by its decomposition, as often as it takes; the values keep
// their names where the operator had one output. Bodies of fused nodes are left alone. Returns whether it
// changed the graph. Operators that `stays` holds for are left as they are.
bool decompose_composites(Graph& graph, const std::function<bool(const OperatorSchema& schema)>& stays = {});
// The same for one node.
void decompose(Graph& graph, Node* node);
// Replaces one node by what the rule makes of it.
void expand(Graph& graph, Node* node, const GraphRule& rule);
// Replaces one node by the nodes of `body`, whose inputs and outputs are the node's, in order.
void expand(Graph& graph, Node* node, const Graph& body);

}  // namespace tessera
