// Convolutions whose channels are each by themselves, which cuDNN computes without what follows them.
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "generated.depthwise": of fp16, bf16 and fp32, over two spatial axes, alone or with a bias, a residual and
// an activation.
KernelCandidate depthwise_convolution_candidate(Context& context);

}  // namespace tessera::cuda
