// A graph as a picture: the Graphviz language.
#pragma once

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

// One box per node, coloured by operator class, edges labelled with types; parameters and constants are left
// out.
std::string to_dot(const Graph& graph);

}  // namespace tessera
