// Convolutions by Winograd's minimal filtering: 2.25 to 4 times fewer products than the direct way for
// windows of 3 x 3 without strides, in fp32. Rounding errors are about ten times those of the direct way,
// which is still far below what training notices (Lavin and Gray 2016, arXiv:1509.09308).
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// For "convolution", plain and fused with bias, residual and limits in this order.
KernelCandidate winograd_convolution_candidate();
KernelCandidate winograd_data_gradient_candidate();
KernelCandidate winograd_weight_gradient_candidate();

}  // namespace tessera::cpu
