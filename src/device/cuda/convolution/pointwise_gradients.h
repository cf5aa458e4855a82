// Both gradients of pointwise convolutions in one kernel, with what fuse_pointwise_gradients puts behind or
// before them.
#pragma once

#include "tessera/passes/pass.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Whether a kernel of this folder takes the gradients of the convolution whose data gradient the node is, and
// is the faster way on this GPU. `tf32`: fp32 products may round their operands.
FusedGradients takes_summed_gradients(const Node& data_gradient, size_t normalizations, bool tf32,
                                      const GpuTraits& gpu);
// Whether the mask costs less to make again than to keep, of gradients with two normalizations that are
// taken.
bool recomputes_mask(const Node& data_gradient, bool tf32, const GpuTraits& gpu);
bool takes_normalized_gradients(const Node& data_gradient, bool tf32, const GpuTraits& gpu);

}  // namespace tessera::cuda
