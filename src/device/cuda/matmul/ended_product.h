// Matrix products whose kernel does the elementwise work after them, too.
#pragma once

#include "tessera/graph/graph.h"

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

// Whether the kernel below may take a product, alone or fused, with the elementwise node or cluster that
// reads it, and may pay: in 16 bits, of compute capability 9.0, and so large that its tiles fill the GPU.
bool ends_product(const Node& product, const Node& reader, const GpuTraits& gpu);

// The program of a node of kind "ended_product". `many`: as EndedProductLayout has it. May refuse.
GeneratedProgram ended_product(const KernelRequest& request, const GpuTraits& gpu, bool many);

}  // namespace tessera::cuda
