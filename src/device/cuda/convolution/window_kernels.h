// Plain loops for convolutions that no library takes.
#pragma once

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

// convolution, transposed_convolution, and the gradients of convolution, in any type.
GeneratedProgram plain_convolution(const Node& node, const GpuTraits& gpu);

}  // namespace tessera::cuda
