// Prints many clusters as one launch.
#pragma once

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

// Inputs and outputs of all clusters of a group: parameters of a kernel take 32,764 bytes in all.
inline constexpr int64_t kValuesOfAGroup = 4000;

// The body of `group` holds clusters that read its inputs and make its outputs; in each, all values but
// single numbers have as many elements, and reductions are over all of them. Throws Error(unsupported) with
// the reason for any other body.
GeneratedProgram print_grouped_clusters(const Node& group);

}  // namespace tessera::cuda
