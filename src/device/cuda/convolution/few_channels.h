// Convolutions of images with few channels by kernels of our own (kernels/few_channels.cuh,
// kernels/few_channel_gradient.cuh).
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "generated.few_channels", for a convolution, alone or with its statistics, and for a weight gradient; in 16
// bits also of an image in fp32 that the body rounds (fuse_input_casts).
KernelCandidate few_channel_candidate(Context& context);
// Whether it takes the convolution. `tf32`: fp32 products may round their operands.
bool takes_few_channels(const Node& convolution, bool tf32);
// Whether it would take the node, a convolution or weight gradient in 16 bits, with its image in fp32.
bool takes_wide_image(const Node& node, const GpuTraits& gpu);

}  // namespace tessera::cuda
