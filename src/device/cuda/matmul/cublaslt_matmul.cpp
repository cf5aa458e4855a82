// Matrix products by cuBLASLt, with bias, residual and activation in its epilogue; plain loops for what it
// refuses.
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/matmul/matmul_problem.h"
#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/queue.h"
#include "device/cuda/runtime/status.h"

namespace tessera::cuda {
namespace {

constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;  // what Hopper's kernels may ask for
constexpr uint32_t kOperandAlignment = kMemoryAlignment;

cublasLtHandle_t handle_of(const Context& context) {
  static std::mutex mutex;
  static std::map<const Context*, cublasLtHandle_t> handles;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[&context];
  if (handle == nullptr) {
    context.enter();
    check(cublaslt().cublasLtCreate_(&handle), "starting");
  }
  return handle;
}

cudaDataType_t lt_type(DataType type) {
  switch (type) {
    case DataType::fp64:
      return CUDA_R_64F;
    case DataType::fp16:
      return CUDA_R_16F;
    case DataType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

// Of what is asked before the kernel is made: what cuBLASLt does not do is a refusal.
void check_taken(cublasStatus_t status, const std::string& what) {
  if (status != CUBLAS_STATUS_SUCCESS && error_code(status) == ErrorCode::unsupported)
    backend::refuse("cuBLASLt: {} failed: {}", what, cublaslt().cublasLtGetStatusString_(status));
  check(status, what);
}

// Descriptors live as long as the kernel.
class Layout {
 public:
  Layout(DataType type, uint64_t rows, uint64_t columns, int64_t batch, int64_t batch_stride) {
    check_taken(cublaslt().cublasLtMatrixLayoutCreate_(&layout_, lt_type(type), rows, columns,
                                                       static_cast<int64_t>(rows)),
                "describing a matrix");
    const auto count = static_cast<int32_t>(batch);
    check_taken(cublaslt().cublasLtMatrixLayoutSetAttribute_(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                             &count, sizeof(count)),
                "setting the batch");
    check_taken(
        cublaslt().cublasLtMatrixLayoutSetAttribute_(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                     &batch_stride, sizeof(batch_stride)),
        "setting the batch's stride");
  }
  ~Layout() { cublaslt().cublasLtMatrixLayoutDestroy_(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

struct DestroyOperation {
  void operator()(cublasLtMatmulDesc_t operation) const { cublaslt().cublasLtMatmulDescDestroy_(operation); }
};

// A product with the algorithm for it. Row-major matrices are the transposes of column-major ones, so
// cuBLASLt is asked for y^T = b^T a^T.
class LtProduct {
 public:
  // Refuses what cuBLASLt does not do.
  LtProduct(Context& context, const MatmulProblem& problem)
      : context_(context),
        problem_(problem),
        b_(problem.type, problem.transpose_b ? problem.k : problem.n,
           problem.transpose_b ? problem.n : problem.k, problem.batch, problem.b_stride),
        a_(problem.type, problem.transpose_a ? problem.m : problem.k,
           problem.transpose_a ? problem.k : problem.m, problem.batch, problem.a_stride),
        y_(problem.type, problem.n, problem.m, problem.batch, problem.m * problem.n) {
    describe();
    choose();
  }

  int64_t workspace_bytes() const { return static_cast<int64_t>(workspace_bytes_); }

  void run(const KernelArguments& arguments) {
    context_.enter();
    if (problem_.bias.has_value()) {
      const void* bias = arguments.inputs[*problem_.bias];
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    const bool adds = problem_.residual.has_value();
    const void* c = adds ? arguments.inputs[*problem_.residual] : arguments.outputs[0];
    const bool wide = problem_.type == DataType::fp64;
    const double ones[] = {1.0, 0.0};
    const float narrow_ones[] = {1.0F, 0.0F};
    const void* alpha = wide ? static_cast<const void*>(&ones[0]) : &narrow_ones[0];
    const void* beta = wide ? static_cast<const void*>(&ones[adds ? 0 : 1]) : &narrow_ones[adds ? 0 : 1];
    check(cublaslt().cublasLtMatmul_(handle_of(context_), operation_.get(), alpha,
                                     arguments.inputs[problem_.b], b_.get(), arguments.inputs[problem_.a],
                                     a_.get(), beta, c, y_.get(), arguments.outputs[0], y_.get(), &algorithm_,
                                     arguments.workspace, workspace_bytes_, stream_of(arguments.queue)),
          "a matrix product");
  }

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check_taken(
        cublaslt().cublasLtMatmulDescSetAttribute_(operation_.get(), attribute, &value, sizeof(value)),
        "describing a product");
  }

  void describe() {
    const bool fast = problem_.type == DataType::fp32 && problem_.tf32;
    const cublasComputeType_t compute = problem_.type == DataType::fp64 ? CUBLAS_COMPUTE_64F
                                        : fast                          ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                        : CUBLAS_COMPUTE_32F;
    const cudaDataType_t scale = problem_.type == DataType::fp64 ? CUDA_R_64F : CUDA_R_32F;
    cublasLtMatmulDesc_t operation = nullptr;
    check_taken(cublaslt().cublasLtMatmulDescCreate_(&operation, compute, scale), "describing a product");
    operation_.reset(operation);
    set(CUBLASLT_MATMUL_DESC_TRANSA, problem_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, problem_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    const bool bias = problem_.bias.has_value();
    cublasLtEpilogue_t epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    if (problem_.activation == "relu") epilogue = bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    if (problem_.activation == "gelu") epilogue = bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  }

  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    check_taken(cublaslt().cublasLtMatmulPreferenceCreate_(&preference), "creating a preference");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      cublaslt().cublasLtMatmulPreferenceSetAttribute_(preference, attribute, &value, sizeof(value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(attribute, kOperandAlignment);
    }
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        cublaslt().cublasLtMatmulAlgoGetHeuristic_(handle_of(context_), operation_.get(), b_.get(), a_.get(),
                                                   y_.get(), y_.get(), preference, 1, &result, &found);
    cublaslt().cublasLtMatmulPreferenceDestroy_(preference);
    check_taken(status, "looking for an algorithm");
    backend::refuse_unless(found > 0, "cuBLASLt has no algorithm for it");
    algorithm_ = result.algo;
    workspace_bytes_ = result.workspaceSize;
  }

  Context& context_;
  MatmulProblem problem_;
  Layout b_;
  Layout a_;
  Layout y_;
  std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DestroyOperation> operation_;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_bytes_ = 0;
};

class LtMatmul : public Kernel {
 public:
  explicit LtMatmul(std::shared_ptr<LtProduct> product) : product_(std::move(product)) {}
  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }
  void run(const KernelArguments& arguments) override { product_->run(arguments); }

 private:
  std::shared_ptr<LtProduct> product_;
};

// In the place of cuBLASLt's where the GPU is not there: books the largest workspace that an algorithm may
// take.
class AbsentMatmul : public Kernel {
 public:
  int64_t workspace_bytes() const override { return kMostWorkspaceBytes; }
  void run(const KernelArguments&) override {
    fail(ErrorCode::unsupported, "a card that is only planned for runs nothing");
  }
};

KernelCandidate lt_candidate(Context& context) {
  return backend::checked_candidate("cublaslt.matmul",
                                    [&context](const KernelRequest& request) -> KernelMaker {
                                      const MatmulProblem problem = make_matmul_problem(request);
                                      if (!context.present())
                                        return [] { return std::make_unique<AbsentMatmul>(); };
                                      return [product = std::make_shared<LtProduct>(context, problem)] {
                                        return std::make_unique<LtMatmul>(product);
                                      };
                                    });
}

std::vector<KernelCandidate> single(const Node&, Context& context) {
  const auto plain = [&context](const KernelRequest& request) {
    return make_generated_kernel(context, plain_matmul(request.node, context.traits()));
  };
  return {lt_candidate(context), backend::fallback_candidate("generated.matmul", plain)};
}

std::vector<KernelCandidate> fused(const Node&, Context& context) {
  return {lt_candidate(context)};
}

const CudaKernelRegistration kMatmul({.key = "matmul", .candidates = single});
const CudaKernelRegistration kFused({.key = "fused:matmul", .candidates = fused});

}  // namespace
}  // namespace tessera::cuda
