#include "device/cuda/matmul/lt_product.h"

#include <cstring>
#include <string>
#include <utility>

#include "tessera/base/made_once.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/queue.h"
#include "device/cuda/runtime/status.h"

namespace tessera::cuda {
namespace {

constexpr uint32_t kOperandAlignment = kMemoryAlignment;

using Results = std::vector<cublasLtMatmulHeuristicResult_t>;

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

LtDescriptor<cublasLtMatrixLayout_t> describe_matrix(DataType type, int64_t rows, int64_t columns,
                                                     int64_t batch, int64_t batch_stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_taken(
      cublaslt().cublasLtMatrixLayoutCreate_(&layout, lt_type(type), static_cast<uint64_t>(rows),
                                             static_cast<uint64_t>(columns), static_cast<int64_t>(rows)),
      "describing a matrix");
  LtDescriptor<cublasLtMatrixLayout_t> result(layout);
  const auto count = static_cast<int32_t>(batch);
  check_taken(cublaslt().cublasLtMatrixLayoutSetAttribute_(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                           sizeof(count)),
              "setting the batch");
  check_taken(cublaslt().cublasLtMatrixLayoutSetAttribute_(
                  layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride, sizeof(batch_stride)),
              "setting the batch's stride");
  return result;
}

// How the algorithms beside the first may add up what blocks have summed: not in the result's type where that
// is narrower than the sums, nor in the result, one block after the other, where the order must be fixed.
uint32_t reductions_of_others(const MatmulProblem& problem) {
  const bool narrow = size_of(problem.type) < sizeof(float);
  if (narrow) return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (problem.deterministic)
    return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  return CUBLASLT_REDUCTION_SCHEME_MASK;
}

}  // namespace

// What products on one GPU share.
struct LtContext {
  explicit LtContext(const Context& context) {
    context.enter();
    check(cublaslt().cublasLtCreate_(&handle), "starting");
  }
  ~LtContext() { cublaslt().cublasLtDestroy_(handle); }
  LtContext(const LtContext&) = delete;
  LtContext& operator=(const LtContext&) = delete;

  cublasLtHandle_t handle = nullptr;
  // By the problem's key: asked for once for all candidates and all nodes.
  MadeOnce<std::string, std::shared_ptr<const Results>> other_algorithms{8192};
};

std::vector<cublasLtMatmulHeuristicResult_t> other_algorithms(
    const cublasLtMatmulHeuristicResult_t& first, std::span<const cublasLtMatmulHeuristicResult_t> results) {
  std::vector<cublasLtMatmulHeuristicResult_t> others;
  for (const cublasLtMatmulHeuristicResult_t& result : results) {
    const bool same = std::memcmp(&result.algo, &first.algo, sizeof first.algo) == 0;
    if (result.state != CUBLAS_STATUS_SUCCESS || same) continue;
    if (static_cast<int64_t>(others.size()) + 1 < kLtAlgorithms) others.push_back(result);
  }
  return others;
}

LtProduct::LtProduct(Context& context, const MatmulProblem& problem, int64_t choice)
    : context_(context), shared_(context.part<LtContext>()), problem_(problem) {
  context.enter();
  b_ = describe_matrix(problem.type, problem.transpose_b ? problem.k : problem.n,
                       problem.transpose_b ? problem.n : problem.k, problem.batch, problem.b_stride);
  a_ = describe_matrix(problem.type, problem.transpose_a ? problem.m : problem.k,
                       problem.transpose_a ? problem.k : problem.m, problem.batch, problem.a_stride);
  y_ = describe_matrix(problem.type, problem.n, problem.m, problem.batch, problem.m * problem.n);
  describe();
  const cublasLtMatmulHeuristicResult_t taken = choice == 0 ? first() : other(choice);
  algorithm_ = taken.algo;
  workspace_bytes_ = taken.workspaceSize;
}

void LtProduct::run(const KernelArguments& arguments) {
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
  check(cublaslt().cublasLtMatmul_(shared_.handle, operation_.get(), alpha, arguments.inputs[problem_.b],
                                   b_.get(), arguments.inputs[problem_.a], a_.get(), beta, c, y_.get(),
                                   arguments.outputs[0], y_.get(), &algorithm_, arguments.workspace,
                                   workspace_bytes_, stream_of(arguments.queue)),
        "a matrix product");
}

template <typename T>
void LtProduct::set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_taken(cublaslt().cublasLtMatmulDescSetAttribute_(operation_.get(), attribute, &value, sizeof(value)),
              "describing a product");
}

void LtProduct::describe() {
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

Results LtProduct::ask(int64_t most, uint32_t reductions) const {
  cublasLtMatmulPreference_t preference = nullptr;
  check_taken(cublaslt().cublasLtMatmulPreferenceCreate_(&preference), "creating a preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    cublaslt().cublasLtMatmulPreferenceSetAttribute_(preference, attribute, &value, sizeof(value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kMostLtWorkspaceBytes));
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(attribute, kOperandAlignment);
  }
  Results results(static_cast<size_t>(most));
  int found = 0;
  const cublasStatus_t status = cublaslt().cublasLtMatmulAlgoGetHeuristic_(
      shared_.handle, operation_.get(), b_.get(), a_.get(), y_.get(), y_.get(), preference,
      static_cast<int>(most), results.data(), &found);
  cublaslt().cublasLtMatmulPreferenceDestroy_(preference);
  check_taken(status, "looking for an algorithm");
  results.resize(static_cast<size_t>(found));
  return results;
}

cublasLtMatmulHeuristicResult_t LtProduct::first() const {
  const Results results = ask(1, CUBLASLT_REDUCTION_SCHEME_MASK);
  backend::refuse_unless(!results.empty(), "cuBLASLt has no algorithm for it");
  return results.front();
}

cublasLtMatmulHeuristicResult_t LtProduct::other(int64_t choice) const {
  const auto others = shared_.other_algorithms.get(problem_.key(), [&] {
    return std::make_shared<const Results>(
        other_algorithms(first(), ask(kLtAlgorithms, reductions_of_others(problem_))));
  });
  const auto count = static_cast<int64_t>(others->size());
  backend::refuse_unless(choice <= count, "cuBLASLt names {} algorithms", count + 1);
  return (*others)[static_cast<size_t>(choice - 1)];
}

}  // namespace tessera::cuda
