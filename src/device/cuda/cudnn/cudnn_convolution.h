// Convolutions and their gradients by cuDNN, alone and with what it fuses.
#pragma once

#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "cudnn.convolution" and, for the tuner alone, "cudnn.convolution#N" of the further plans that cuDNN names.
// For a convolution, its gradients, and the fused kinds "convolution", "convolution_data_gradient" and
// "convolution_statistics".
std::vector<KernelCandidate> cudnn_convolution_candidates(Context& context);

}  // namespace tessera::cuda
