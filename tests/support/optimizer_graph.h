// A step of an optimizer over many parameters: a large graph of many small parts.
#pragma once

#include <memory>

#include "tessera/graph/graph.h"

namespace tessera::testing {

// LAMB (You et al. 2020) with clipping by the norm of all gradients and a guard against infinite ones, on so
// many parameters in shapes of BERT's: about 50 nodes for each.
std::unique_ptr<Graph> optimizer_graph(int parameters);

}  // namespace tessera::testing
