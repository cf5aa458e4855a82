// What is known before the first run.
#pragma once

#include <unordered_set>

#include "tessera/graph/graph.h"

namespace tessera {

// The values that depend on constants alone (nodes and inputs of the graph) or, when `frozen`, on parameters
// and states as well: they are computed once, when the variables are bound.
std::unordered_set<const Value*> settled_values(const Graph& graph, bool frozen);

// Whether one value is, of a frozen graph.
bool is_settled(const Value& value);

}  // namespace tessera
