// Attention of texts of any length by a kernel of ours (kernels/block_attention.cuh), with dropout of its
// weights, and its gradient.
#pragma once

#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// By how many rows a warp has; the first one is a good choice where nothing is measured.
std::vector<KernelCandidate> block_attention_candidates(Context& context);

// Whether they take it, wherever its operands lie.
bool is_attention_by_blocks(const Node& attention, const GpuTraits& gpu);

}  // namespace tessera::cuda
