// Both gradients of pointwise convolutions in one kernel, fused with what stands after or before
// them.
#pragma once

#include "tessera/passes/pass.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Which gradients of a convolution a kernel makes together with what follows them.
enum class FusedGradients { none, data, both };

// Which gradients a kernel of this folder makes of the convolution whose data gradient the node is, where
// that is the faster way on this GPU. `tf32`: fp32 products may round their operands.
FusedGradients takes_summed_gradients(const Node& data_gradient, size_t normalizations, bool tf32,
                                      const GpuTraits& gpu);
// Whether the mask costs less to recompute than to keep, of gradients with two normalizations that are
// taken.
bool recomputes_mask(const Node& data_gradient, bool tf32, const GpuTraits& gpu);
bool takes_normalized_gradients(const Node& data_gradient, bool tf32, const GpuTraits& gpu);

}  // namespace tessera::cuda
