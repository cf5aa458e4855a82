// Attention of a few queries, such as those of the next token of a text (kernels/few_query_attention.cuh).
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/attention/placed_attention.h"

namespace tessera::cuda {

// Above so many queries it is slower than what multiplies tiles of them.
inline constexpr int64_t kFewQueries = 4;

// "generated.few_query_attention", of attention without a causal order, of at most eight queries, in 16 bits
// or fp32.
KernelCandidate few_query_candidate(Context& context);

}  // namespace tessera::cuda
