// What of attention is cuDNN's.
#pragma once

#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Whether cuDNN takes a node of attention or of its gradient, as far as that is known without a GPU: it reads
// heads wherever they lie.
bool is_attention_of_cudnn(const Node& attention, const GpuTraits& gpu);

// Whether its gradient makes that of the bias as well.
bool makes_bias_gradient_by_cudnn(const Node& gradient, const GpuTraits& gpu);

// "cudnn.attention" and "cudnn.attention_gradient": its own choice, and what the tuner may take in its place.
std::vector<KernelCandidate> cudnn_attention_candidates(const Node& node, Context& context);

}  // namespace tessera::cuda
