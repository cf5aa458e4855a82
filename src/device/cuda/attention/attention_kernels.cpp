// Kernels of attention and its gradient. For what all refuse, products and clusters
// (backend::attention_rules) come after.
#include <algorithm>

#include "device/cuda/attention/block_attention.h"
#include "device/cuda/attention/cudnn_attention.h"
#include "device/cuda/attention/few_query_attention.h"
#include "device/cuda/attention/placed_attention.h"
#include "device/cuda/attention/short_attention.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

// Measured on an H100 in bf16 (docs/experiments/065-attention-of-short-texts.md): of 32 tokens it takes a
// third of cuDNN's time, of 128 as much.
bool is_faster_short(const AttentionProblem& problem) {
  constexpr int64_t kShort = 64;
  return std::max(problem.queries, problem.keys) <= kShort;
}

std::vector<KernelCandidate> candidates(const Node& node, Context& context) {
  const AttentionProblem problem = attention_problem_in(node);
  std::vector<KernelCandidate> result = cudnn_attention_candidates(node, context);
  result.insert(is_faster_short(problem) ? result.begin() : result.end(), short_attention_candidate(context));
  const bool few = problem.queries <= kFewQueries;
  result.insert(few ? result.begin() : result.end(), few_query_candidate(context));
  // Measured on an H200 in bf16 (docs/experiments/077-attention-that-drops.md): of 128 tokens it takes 0.85
  // of cuDNN's time, of 512 a tenth more.
  constexpr int64_t kMedium = 256;
  if (std::max(problem.queries, problem.keys) <= kMedium)
    result.push_back(block_attention_candidates(context).front());
  return result;
}

std::vector<KernelCandidate> dropout_candidates(const Node&, Context& context) {
  return block_attention_candidates(context);
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

const CudaKernelRegistration kDropout({.key = "dropout_attention",
                                       .candidates = dropout_candidates,
                                       .tunable = true});
const CudaKernelRegistration kDropoutGradient({.key = "dropout_attention_gradient",
                                               .candidates = dropout_candidates,
                                               .tunable = true});
const CudaKernelRegistration kMovedDropout({.key = "fused:dropout_attention",
                                            .candidates = dropout_candidates,
                                            .tunable = true});
const CudaKernelRegistration kMovedDropoutGradient({.key = "fused:dropout_attention_gradient",
                                                    .candidates = dropout_candidates,
                                                    .tunable = true});

}  // namespace
}  // namespace tessera::cuda
