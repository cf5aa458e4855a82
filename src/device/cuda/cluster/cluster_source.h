// Prints the body of a cluster as a kernel.
#pragma once

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

// What a cluster may end with.
inline constexpr int kReductionsOfACluster = 8;

// `body` holds primitives, casts, selects, broadcasts, scalar constants and uniform random numbers of one
// iteration shape, and any number of reductions of values of that shape over the same axes, whose results
// nothing in the body reads. The program's inputs and outputs are those of the body. Throws
// Error(unsupported) with the reason for any other body.
GeneratedProgram print_cluster(const Graph& body, const GpuTraits& gpu);

// Whether kernels know the types of all that the node reads and makes.
bool clusters_take(const Node& node);

}  // namespace tessera::cuda
