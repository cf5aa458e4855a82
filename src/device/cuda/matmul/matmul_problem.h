// A matrix product as cuBLASLt takes it, and the plain kernel for what it does not take.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tessera/passes/fusion_pattern.h"

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

// y [batch, M, N] = activation(a [batch, M, K] b [batch, K, N] + bias [N] + residual), all row-major.
struct MatmulProblem {
  DataType type = DataType::fp32;
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  bool transpose_a = false;  // a is stored as [K, M]
  bool transpose_b = false;
  int64_t a_stride = 0;  // from one matrix of the batch to the next, in elements; 0: one for all
  int64_t b_stride = 0;
  std::string activation;  // "relu", "gelu" (the tanh form) or ""
  bool tf32 = false;
  bool deterministic = true;
  // Places among the node's inputs.
  size_t a = 0;
  size_t b = 1;
  std::optional<size_t> bias;
  std::optional<size_t> residual;

  // Tells problems apart, wherever their operands are.
  std::string key() const;
};

// Played by the result of a norm that is fused with the product which reads it.
inline constexpr std::string_view kNormalizedRole = "normalized";

// `a` is what a fused norm reads. Throws Error(unsupported) for what cuBLASLt cannot describe.
MatmulProblem make_matmul_problem(const KernelRequest& request);

// A product with what its epilogues take.
FusionPattern matmul_pattern();

// One thread for each element of the result.
GeneratedProgram plain_matmul(const Node& node, const GpuTraits& gpu);

}  // namespace tessera::cuda
