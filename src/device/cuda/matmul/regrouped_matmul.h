// Products whose operands repeat some of their leading axes, which one call of cuBLASLt does not describe:
// those of a position's weights with the queries of every text, or of a few heads of keys with many of
// queries.
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "regrouped": where b has fewer leading axes than a, the axes that b repeats stand beside the rows of a, so
// that each matrix of b is read for one product of many rows. What else is repeated is copied first. Refuses
// products without such axes, and fused ones.
KernelCandidate regrouped_candidate(Context& context);

}  // namespace tessera::cuda
