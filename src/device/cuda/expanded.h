// Operators that are a small graph of clusters, alone and inside fused nodes.
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Whether the operator is defined here by reductions and elementwise formulas, and products: the norms and
// attention.
bool has_rule(const Node& node);

// "expanded": the node, or the body of a fused node, with every operator that has a rule replaced by it and
// the elementwise work fused anew, so that what follows a normalization joins its last pass over memory.
KernelCandidate expanded_candidate(const Node& node, Context& context);

}  // namespace tessera::cuda
