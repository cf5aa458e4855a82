// Convolutions of bytes.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// "loops.bytes": every pair of byte types, with a bias in int32 or none.
KernelCandidate byte_convolution_candidate();

}  // namespace tessera::cpu
