// What may follow a convolution or matrix product in one kernel: a bias, a factor per channel, a residual,
// activations.
#pragma once

#include <string_view>

#include "tessera/graph/graph.h"

namespace tessera::passes {

// Fuses every node of operator `main` with the chain that follows it into a fused node of kind `main`. A
// chain goes on while the value so far has one reader and keeps its type: additions and multiplications with
// one number per channel (the last axis), one addition of a whole tensor, activations.
bool fuse_contractions(Graph& graph, std::string_view main);

// Whether the value holds one number per entry of the last axis of `shape`, and broadcasts along the others.
bool is_per_channel(const Value& value, const SymbolicShape& shape);

}  // namespace tessera::passes
