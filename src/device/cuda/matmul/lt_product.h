// A matrix product by cuBLASLt, with bias, residual and activation in its epilogue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cuda/matmul/matmul_problem.h"
#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// The largest workspace that an algorithm may take: what Hopper's kernels may ask for.
inline constexpr int64_t kMostLtWorkspaceBytes = int64_t{32} << 20;
// How many algorithms for a problem there are to choose from, at most.
inline constexpr int64_t kLtAlgorithms = 8;

// Those of cuBLASLt's results that can be taken and are another algorithm than `first`, in their order, but
// no more than kLtAlgorithms together with it.
std::vector<cublasLtMatmulHeuristicResult_t> other_algorithms(
    const cublasLtMatmulHeuristicResult_t& first, std::span<const cublasLtMatmulHeuristicResult_t> results);

struct LtContext;

struct DestroyLt {
  void operator()(cublasLtMatmulDesc_t operation) const { cublaslt().cublasLtMatmulDescDestroy_(operation); }
  void operator()(cublasLtMatrixLayout_t layout) const { cublaslt().cublasLtMatrixLayoutDestroy_(layout); }
};
template <typename Handle>
using LtDescriptor = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyLt>;

// A problem as cuBLASLt has it, and one of the algorithms for it, on a GPU that is there. Row-major matrices
// are the transposes of column-major ones, so cuBLASLt is asked for y^T = b^T a^T. Kernels may share it, but
// one thread at a time may run it.
class LtProduct {
 public:
  // The algorithm that cuBLASLt's heuristics name in place `choice`, with 0 the first. The others keep
  // partial sums in fp32 or wider, and where the problem is deterministic they add in a fixed order. Refuses
  // what cuBLASLt does not do (device/common/refusal.h).
  LtProduct(Context& context, const MatmulProblem& problem, int64_t choice);

  int64_t workspace_bytes() const { return static_cast<int64_t>(workspace_bytes_); }
  void run(const KernelArguments& arguments);

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value);
  void describe();
  // `reductions`: how algorithms may add up the parts that blocks have summed (cublasLtReductionScheme_t).
  std::vector<cublasLtMatmulHeuristicResult_t> ask(int64_t most, uint32_t reductions) const;
  cublasLtMatmulHeuristicResult_t first() const;
  cublasLtMatmulHeuristicResult_t other(int64_t choice) const;

  Context& context_;
  LtContext& shared_;
  MatmulProblem problem_;
  LtDescriptor<cublasLtMatrixLayout_t> b_;
  LtDescriptor<cublasLtMatrixLayout_t> a_;
  LtDescriptor<cublasLtMatrixLayout_t> y_;
  LtDescriptor<cublasLtMatmulDesc_t> operation_;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_bytes_ = 0;
};

}  // namespace tessera::cuda
