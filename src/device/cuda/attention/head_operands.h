// Operands of attention's own kernels, as their text names them.
#pragma once

#include <string>

#include "device/cuda/attention/placed_attention.h"
#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

// Members of a kernel's problem, `static HeadPlaces q()` and so on: where each operand that the node has lies
// (kernels/head_places.cuh).
std::string print_places(const PlacedAttention& attention);

// Pointers to what the node has: q, k, v, bias, counter, y, log_sum, and of a gradient dy, dq, dk and dv.
void add_pointers(PointerList& pointers, const PlacedAttention& attention);

// Refuses (device/common/refusal.h) a bias, counter or log_sum that lies in another tensor.
void refuse_unless_whole(const PlacedAttention& attention);

}  // namespace tessera::cuda
