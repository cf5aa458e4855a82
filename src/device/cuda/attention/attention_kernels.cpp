// Kernels of attention and its gradient. For what all refuse, products and clusters
// (backend::attention_rules) come after.
#include <algorithm>

#include "device/cuda/attention/cudnn_attention.h"
#include "device/cuda/attention/few_query_attention.h"
#include "device/cuda/attention/placed_attention.h"
#include "device/cuda/attention/short_attention.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

// Measured on an H100 in bf16 (docs/experiments/065-attention-of-short-texts.md): of 32 tokens it takes a
// third of cuDNN's time, of 128 as much.
bool is_faster_short(const Node& node) {
  constexpr int64_t kShort = 64;
  const AttentionProblem problem = attention_problem_in(node);
  return std::max(problem.queries, problem.keys) <= kShort;
}

std::vector<KernelCandidate> candidates(const Node& node, Context& context) {
  std::vector<KernelCandidate> result = cudnn_attention_candidates(node, context);
  result.insert(is_faster_short(node) ? result.begin() : result.end(), short_attention_candidate(context));
  const bool few = attention_problem_in(node).queries <= kFewQueries;
  result.insert(few ? result.begin() : result.end(), few_query_candidate(context));
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
