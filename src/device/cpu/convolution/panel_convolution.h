// Convolutions and their data gradients as a matrix product of pixels and channels, of a weight that is
// packed in panels.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// Of windows of one element, which read pixels as they lie. The convolution is plain or fused with bias,
// residual and limits in this order.
KernelCandidate pointwise_convolution_candidate();
KernelCandidate pointwise_data_gradient_candidate();
// Of any windows without groups, whose elements are gathered for some pixels at a time.
KernelCandidate window_convolution_candidate();

}  // namespace tessera::cpu
