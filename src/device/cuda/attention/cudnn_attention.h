// What of attention is cuDNN's.
#pragma once

#include "tessera/graph/graph.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Whether cuDNN takes a node of attention or of its gradient, as far as that is known without a GPU: it reads
// heads wherever they lie.
bool is_attention_of_cudnn(const Node& attention, const GpuTraits& gpu);

}  // namespace tessera::cuda
