// Pointwise convolutions with the rest of the batch normalizations before them, or a residual after
// them, in one kernel.
#pragma once

#include "tessera/compile/kernel.h"
#include "tessera/graph/graph.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "generated.residual_convolution": of what cuDNN takes, what it is slow for.
KernelCandidate residual_convolution_candidate(Context& context);
// "generated.pointwise_convolution": with the statistics of its result, in a fixed order; in 16 bits only
// where that is asked for, as cuDNN's are faster.
KernelCandidate pointwise_statistics_candidate(Context& context);

// Whether the kernel takes the convolution with so many normalizations and perhaps a residual, and is the
// faster way on this GPU. `tf32`: fp32 products may round their operands.
bool takes_normalized_input(const Node& convolution, size_t normalizations, bool prologue_residual, bool tf32,
                            const GpuTraits& gpu);
// The same of the convolution with statistics alone. `deterministic`: they must have the same bits at every
// run.
bool takes_pointwise_statistics(const Node& convolution, bool tf32, bool deterministic, const GpuTraits& gpu);

}  // namespace tessera::cuda
