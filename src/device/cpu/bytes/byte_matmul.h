// Matrix products of bytes.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// "loops.bytes": every pair of byte types, by one right-hand matrix.
KernelCandidate byte_matmul_candidate();

}  // namespace tessera::cpu
