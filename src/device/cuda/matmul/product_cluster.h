// Matrix products whose kernel does the elementwise work before and after them, too.
#pragma once

#include "tessera/graph/graph.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "kernels/product_cluster_layout.h"

namespace tessera::cuda {

// Whether the kernel below may take a product, alone or fused, with the elementwise nodes or clusters that
// make its first factor and that read it (null: there is none), and may pay: in 16 bits, of compute
// capability 9.0, and so large that its tiles fill the GPU; before it light work which nothing does twice.
bool clusters_product(const Node* before, const Node& product, const Node* after, const GpuTraits& gpu);

// The program of a node of kind "product_cluster". May refuse.
GeneratedProgram product_cluster(const KernelRequest& request, const GpuTraits& gpu,
                                 const ProductClusterLayout& layout);

}  // namespace tessera::cuda
