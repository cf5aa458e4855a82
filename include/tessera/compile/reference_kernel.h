// The candidates that every device can fall back to: the operator's own reference loop.
#pragma once

#include <string_view>

#include "tessera/compile/kernel.h"

namespace tessera {

// Runs the schema's reference loop (double accumulation, one thread) on the device's memory.
KernelCandidate reference_candidate();

inline constexpr std::string_view kHostReferenceKernel = "reference.host";

// The same for devices with memory of their own: the host waits for the operands, computes, and gives the
// results back. A warning says so, once for each operator. Its name is kHostReferenceKernel.
KernelCandidate host_reference_candidate();

}  // namespace tessera
