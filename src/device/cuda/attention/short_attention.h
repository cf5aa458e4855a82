// Attention over texts so short that a block holds all of a head (kernels/short_attention.cuh).
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "generated.short_attention", of attention and of its gradient, in 16 bits.
KernelCandidate short_attention_candidate(Context& context);

}  // namespace tessera::cuda
