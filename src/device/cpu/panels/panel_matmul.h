// Matrix products of a frozen weight that is packed in panels.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// Whether oneDNN packs the weight of a matrix product for each call, as it does where vectors have eight
// numbers.
bool packs_for_each_call();

// There, of one matrix of weights for all rows of the other operand, which are not many; plain or fused with
// a bias, a residual and an activation in this order.
KernelCandidate panel_matmul_candidate();

}  // namespace tessera::cpu
