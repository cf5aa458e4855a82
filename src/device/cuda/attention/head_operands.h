// Operands of attention's own kernels, as their text names them.
#pragma once

#include <cstdint>
#include <string>

#include "device/cuda/attention/placed_attention.h"
#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Members of a kernel's problem, `static HeadPlaces q()` and so on: where each operand that the node has lies
// (kernels/head_places.cuh).
std::string print_places(const PlacedAttention& attention);

// Pointers to what the node has: q, k, v, bias, key_lengths, counter, y, log_sum, and of a gradient dy, dq,
// dk and dv.
void add_pointers(PointerList& pointers, const PlacedAttention& attention);

// Refuses (device/common/refusal.h) what kernels on the Tensor Cores do not take: other than 16 bits, widths
// that are no multiples of 16 or above `widest`, gradients of keys that several heads of queries share, a
// bias whose gradient is wanted, GPUs before compute capability 8.0.
void refuse_unless_by_tensor_cores(const AttentionProblem& problem, int64_t widest, const GpuTraits& gpu);

// Refuses a bias, key_lengths, counter or log_sum that lies in another tensor.
void refuse_unless_whole(const PlacedAttention& attention);

}  // namespace tessera::cuda
