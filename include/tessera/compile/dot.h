// A graph as a picture: the Graphviz language.
#pragma once

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

// One box per node, colored by operator class, edges labeled with types; parameters and constants are left
// out.
std::string to_dot(const Graph& graph);

}  // namespace tessera
