// A matrix product whose rows are not aligned, as one of padded operands.
#pragma once

#include "tessera/compile/kernel.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "padded": zeros at the end of innermost axes that are no multiple of 16 bytes, the product with its
// epilogue, and of that the part that was asked for. For `matmul` and "fused:matmul" in 16 bits and in TF32;
// refuses aligned ones. only_tuned unless it is sure to pay.
KernelCandidate padded_candidate(const Node& node, Context& context);

// PassTarget::padded_columns: whole accesses, where the candidate were sure to pay if nothing but operands
// had to be copied.
int64_t padded_columns(const Node& product, const GpuTraits& gpu);

}  // namespace tessera::cuda
