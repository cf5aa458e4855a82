// Orders of axes: `permutation[i]` is the axis of the input that becomes axis i, as in operator transpose.
#pragma once

#include <vector>

#include "tessera/base/permutation.h"
#include "tessera/graph/graph.h"

namespace tessera::passes {

using Permutation = std::vector<int64_t>;

// True when transposing a value of this shape moves axes of extent 1 only, so that a reshape does the same.
bool moves_nothing(const SymbolicShape& shape, const Permutation& permutation);

// The transposed value, at no more cost than it takes: the value itself, a reshape, or a transpose.
Value* permuted(Value* value, const Permutation& permutation);

// What stands for the result of a transpose that moves nothing or that follows another one; null when it has
// to stay as it is.
Value* simpler_transpose(const Node& transpose);

}  // namespace tessera::passes
