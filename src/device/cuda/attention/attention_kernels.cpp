// Kernels of attention and its gradient. For what all refuse, products and clusters
// (backend::attention_rules) come after.
#include "device/cuda/attention/cudnn_attention.h"
#include "device/cuda/attention/short_attention.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

std::vector<KernelCandidate> candidates(const Node& node, Context& context) {
  std::vector<KernelCandidate> result = cudnn_attention_candidates(node, context);
  result.push_back(short_attention_candidate(context));
  return result;
}

const CudaKernelRegistration kForward({.key = "attention", .candidates = candidates, .tunable = true});
const CudaKernelRegistration kGradient({.key = "attention_gradient",
                                        .candidates = candidates,
                                        .tunable = true});
const CudaKernelRegistration kMovedForward({.key = "fused:attention",
                                            .candidates = candidates,
                                            .tunable = true});
const CudaKernelRegistration kMovedGradient({.key = "fused:attention_gradient",
                                             .candidates = candidates,
                                             .tunable = true});

}  // namespace
}  // namespace tessera::cuda
