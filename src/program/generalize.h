// A graph for any size, of two that were built for two numbers.
#pragma once

#include "tessera/graph/graph.h"

namespace tessera::program {

// An extent and what it was in either graph.
struct OpenExtent {
  Dimension extent;
  int64_t first = 0;
  int64_t second = 0;
};

// Copies the nodes of `first` into `target`. Shapes among their attributes in which both differ become linear
// functions of the open extent; everything else must be the same in both. `mapping` as copy_nodes() has it.
// Throws Error(unsupported) naming the node that differs otherwise.
void copy_generalized(const Graph& first, const Graph& second, const OpenExtent& open, Graph& target,
                      ValueMapping& mapping);

}  // namespace tessera::program
