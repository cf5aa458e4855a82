// Weight gradients of convolutions with windows in TF32 by a kernel of our own
// (kernels/warpgroup_window_gradient.cuh).
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "generated.window_gradient".
KernelCandidate window_gradient_candidate(Context& context);

}  // namespace tessera::cuda
