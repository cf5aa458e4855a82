// Tolerances of one operator on given inputs: how many terms a result sums follows from its schema and
// shapes, magnitudes from the inputs. tolerance.h has what they become.
#pragma once

#include <vector>

#include "tessera/graph/graph.h"

#include "support/tolerance.h"

namespace tessera::testing {

// n of tolerance.h: how many terms one element of the node's results sums; 1 where it sums none.
int64_t summed_terms(const Node& node);

// One per output.
Tolerances tolerances_of(const Node& node, const std::vector<Tensor>& inputs);

}  // namespace tessera::testing
