// Matrix products of a frozen weight that is packed in panels.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// Of one matrix of weights for all rows of the other operand, plain or fused with a bias, a residual and an
// activation in this order. oneDNN packs the weight for each call where vectors have eight numbers.
KernelCandidate panel_matmul_candidate();

}  // namespace tessera::cpu
