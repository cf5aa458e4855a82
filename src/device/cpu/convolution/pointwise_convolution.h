// Convolutions with windows of one element: a matrix product of pixels and channels.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

KernelCandidate pointwise_convolution_candidate();
KernelCandidate pointwise_data_gradient_candidate();

}  // namespace tessera::cpu
