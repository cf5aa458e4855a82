// Normalisations by cuDNN's engines.
#pragma once

#include <vector>

#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {

// "cudnn.batch_norm" and "cudnn.batch_norm_gradient", for nodes alone or fused with a sum, relu and its mask;
// "cudnn.layer_norm" and "cudnn.layer_norm_gradient".
std::vector<KernelCandidate> cudnn_norm_candidates(const Node& node, Context& context);

}  // namespace tessera::cuda
