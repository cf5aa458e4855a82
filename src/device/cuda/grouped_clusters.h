// Prints many clusters as one launch.
#pragma once

#include "device/cuda/generated_kernel.h"

namespace tessera::cuda {

// Inputs and outputs of all clusters of a group: parameters of a kernel take 32,764 bytes in all.
inline constexpr int64_t kValuesOfAGroup = 4000;

// `body` holds clusters that read its inputs and make its outputs; in each, all values but single numbers
// have as many elements, and reductions are over all of them. The program's inputs and outputs are those of
// the body. Throws Error(unsupported) with the reason for any other body.
GeneratedProgram print_grouped_clusters(const Graph& body);

}  // namespace tessera::cuda
