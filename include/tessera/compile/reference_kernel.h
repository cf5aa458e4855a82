// The candidate that every host-accessible device can fall back to: the operator's own reference loop.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera {

// Runs the schema's reference loop (double accumulation, one thread) on the device's memory.
KernelCandidate reference_candidate();

}  // namespace tessera
