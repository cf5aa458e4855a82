// Random graphs on a device that runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/compile/device.h"

namespace tessera::testing {

// Compiles and runs the graph of the seed as its configuration says: the memory plan holds, results are the
// reference's, also without a plan, and the same bits at every run. Returns what is wrong, "" for nothing.
// Throws what the device throws.
std::string check_seed_on(const std::shared_ptr<Device>& device, uint64_t seed);

// The same for a residual block of a size that GPUs have kernels for: the results are those of plain kernels,
// as exactly.
std::string check_large_block_on(const std::shared_ptr<Device>& device, uint64_t seed);

}  // namespace tessera::testing
