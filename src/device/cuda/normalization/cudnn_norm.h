// Normalizations by cuDNN's engines.
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "cudnn.batch_norm" and "cudnn.batch_norm_gradient", for nodes alone or fused with a sum, relu and its mask;
// "cudnn.layer_norm" and "cudnn.layer_norm_gradient". All but the last are for the tuner alone.
KernelCandidate cudnn_norm_candidate(const Node& node, Context& context);

}  // namespace tessera::cuda
