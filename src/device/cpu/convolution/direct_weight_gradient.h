// The weight gradient of a convolution, as a matrix product of pixels for each tap of the window.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

KernelCandidate direct_weight_gradient_candidate();

}  // namespace tessera::cpu
