// Convolutions whose channels are apart, with one result for each: they wait for memory, so that what follows
// them is worth a loop of our own.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// For "convolution", plain and fused with bias, residual and limits in this order.
KernelCandidate depthwise_convolution_candidate();

}  // namespace tessera::cpu
