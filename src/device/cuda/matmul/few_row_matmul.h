// Products of a few rows, such as those of the next token of a text, by a kernel that does little but read
// the matrix, and can take the layer norm before them in.
#pragma once

#include "tessera/compile/kernel.h"
#include "tessera/passes/fusion_pattern.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// "generated.few_row_matmul": y [M, N] = activation(a [M, K] b' + bias + residual), M of at most 8, b stored
// as [N, K], in 16 bits or exact fp32. For `matmul`, "fused:matmul" and "fused:normalized_matmul".
KernelCandidate few_row_candidate(Context& context);
// Whether the node's product is one of these by its extents.
bool has_few_rows(const Node& node);

// Products of so few rows with the layer norm that nothing else reads. `tf32`: those of fp32 round operands,
// and are left alone.
FusionPattern normalized_matmul_pattern(bool tf32);

}  // namespace tessera::cuda
