// Matrix products by cuBLASLt, also over padded operands; plain loops for what it refuses.
#include <memory>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/matmul/few_row_matmul.h"
#include "device/cuda/matmul/lt_product.h"
#include "device/cuda/matmul/padded_matmul.h"
#include "device/cuda/matmul/regrouped_matmul.h"

namespace tessera::cuda {
namespace {

class LtMatmul : public Kernel {
 public:
  explicit LtMatmul(std::shared_ptr<LtProduct> product) : product_(std::move(product)) {}
  bool loads_at_first_run() const override { return true; }
  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }
  void run(const KernelArguments& arguments) override { product_->run(arguments); }

 private:
  std::shared_ptr<LtProduct> product_;
};

// In the place of cuBLASLt's where the GPU is not there: books the largest workspace that an algorithm may
// take.
class AbsentMatmul : public Kernel {
 public:
  int64_t workspace_bytes() const override { return kMostLtWorkspaceBytes; }
  void run(const KernelArguments&) override {
    fail(ErrorCode::unsupported, "a card that is only planned for runs nothing");
  }
};

// What cuBLASLt was seen to compute wrongly on an H200, of 7 x 6 results in bf16, by its first algorithm.
void refuse_wrong_relu(const MatmulProblem& problem) {
  constexpr int64_t kAccessBytes = 16;
  backend::refuse_unless(problem.activation != "relu" || !is_half(problem.type) ||
                             problem.n * size_of(problem.type) % kAccessBytes == 0,
                         "the ReLU of cuBLASLt 13.1 makes 0 of NaN where rows of 16-bit numbers are not "
                         "whole 16 bytes");
}
// And on an H100, in TF32, by algorithms beside the first. tests/device_cuda/library_faults_test.cpp tells
// when the installed version has the fault no more.
void refuse_other_algorithms(const MatmulProblem& problem) {
  backend::refuse_unless(problem.activation != "relu" || problem.type != DataType::fp32,
                         "the ReLU of some algorithms of cuBLASLt 13.1 makes 0 of NaN in fp32");
}

// The algorithm that cuBLASLt's heuristics put first is not always the fastest: the next ones are candidates
// too, for the tuner.
KernelCandidate lt_candidate(Context& context, int64_t choice) {
  const auto plan = [&context, choice](const KernelRequest& request) -> KernelMaker {
    const MatmulProblem problem = make_matmul_problem(request);
    refuse_wrong_relu(problem);
    if (choice > 0) refuse_other_algorithms(problem);
    if (!context.present()) {
      backend::refuse_unless(choice == 0, "algorithms are counted on the GPU only");
      return [] { return std::make_unique<AbsentMatmul>(); };
    }
    return [product = std::make_shared<LtProduct>(context, problem, choice)] {
      return std::make_unique<LtMatmul>(product);
    };
  };
  const std::string name = choice == 0 ? "cublaslt.matmul" : fmt::format("cublaslt.matmul#{}", choice);
  KernelCandidate candidate = backend::checked_candidate(name, plan);
  candidate.only_tuned = choice > 0;
  return candidate;
}

std::vector<KernelCandidate> fused(const Node& node, Context& context) {
  std::vector<KernelCandidate> candidates;
  for (int64_t choice = 0; choice < kLtAlgorithms; ++choice) {
    candidates.push_back(lt_candidate(context, choice));
    // Some algorithms, the first among them, store the product in its type before the epilogue takes it up.
    candidates.back().rounds_between = node.body() != nullptr;
  }
  KernelCandidate padded = padded_candidate(node, context);
  candidates.insert(padded.only_tuned ? candidates.end() : candidates.begin(), std::move(padded));
  if (has_few_rows(node)) candidates.insert(candidates.begin(), few_row_candidate(context));
  return candidates;
}

std::vector<KernelCandidate> single(const Node& node, Context& context) {
  const auto plain = [&context](const KernelRequest& request) {
    return make_generated_kernel(context, plain_matmul(request.node, context.traits()));
  };
  std::vector<KernelCandidate> candidates = fused(node, context);
  candidates.push_back(regrouped_candidate(context));
  candidates.push_back(backend::fallback_candidate("generated.matmul", plain));
  return candidates;
}

const CudaKernelRegistration kMatmul({.key = "matmul", .candidates = single, .tunable = true});
const CudaKernelRegistration kFused({.key = "fused:matmul", .candidates = fused, .tunable = true});

}  // namespace
}  // namespace tessera::cuda
