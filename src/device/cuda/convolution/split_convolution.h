// Convolutions of few pixels whose sums the blocks of a cluster divide (kernels/split_convolution.cuh).
#pragma once

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

// "generated.split_convolution", for a convolution, alone or with its epilogue.
KernelCandidate split_convolution_candidate(Context& context);

}  // namespace tessera::cuda
