// The algorithms of cuBLASLt as candidates. On a GPU operators_test.cpp and the fuzzer hold each of them
// against the reference, too.
#include <functional>
#include <set>

#include "device/cuda/matmul/lt_product.h"
#include "device/cuda/matmul/matmul_problem.h"
#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"
#include "support/operator_tolerance.h"

namespace tessera::testing {
namespace {

using cuda::MatmulProblem;
using Result = cublasLtMatmulHeuristicResult_t;

constexpr const char* kProduct =
    "graph g(input %a: fp16[64, 512], input %b: fp16[512, 32]) {\n  %y = matmul(%a, %b)\n  output y = %y\n}";

TEST(MatmulCandidates, BesideTheFirstAreForTheTunerAndCountedOnTheGpu) {
  const std::unique_ptr<Graph> graph = parse_graph(kProduct);
  const Node& node = *graph->nodes().front();
  const std::shared_ptr<Device> card = Device::open("cuda:plan-h100");
  EXPECT_TRUE(card->tunable(node));
  const KernelRequest request{.node = node, .frozen_inputs = {false, false}};
  std::vector<std::string> names;
  for (const KernelCandidate& candidate : card->candidates(node)) {
    if (!candidate.name.starts_with("cublaslt.")) continue;
    names.push_back(candidate.name);
    const bool other = candidate.name.find('#') != std::string::npos;
    EXPECT_EQ(candidate.only_tuned, other) << candidate.name;
    EXPECT_EQ(candidate.refusal(request), other ? "algorithms are counted on the GPU only" : "");
  }
  std::vector<std::string> expected{"cublaslt.matmul"};
  for (int i = 1; i < cuda::kLtAlgorithms; ++i) expected.push_back(fmt::format("cublaslt.matmul#{}", i));
  EXPECT_EQ(names, expected);
}

TEST(MatmulCandidates, AreTunedWhereAnEpilogueIsFusedToo) {
  const auto graph = parse_graph(
      "graph g(input %a: fp16[64, 512], input %b: fp16[512, 32], input %bias: fp16[32]) {\n"
      "  %p = matmul(%a, %b)\n  %s = add(%p, %bias)\n  %y = relu(%s)\n  output y = %y\n}");
  CompileOptions options;
  options.tune = true;
  const auto executable = compile(*graph, Device::open("cuda:plan-h100"), options);
  const NodeReport& report = executable->nodes().front();
  EXPECT_EQ(report.operator_name, "fused:matmul");
  EXPECT_EQ(report.kernel, "cublaslt.matmul");
  std::set<std::string> names;
  for (const CandidateReport& candidate : report.candidates) names.insert(candidate.name);
  EXPECT_TRUE(names.contains("cublaslt.matmul#7"));
}

Result result_of(uint64_t algorithm, cublasStatus_t state = CUBLAS_STATUS_SUCCESS) {
  Result result{};
  result.algo.data[0] = algorithm;
  result.workspaceSize = algorithm;
  result.state = state;
  return result;
}

TEST(MatmulCandidates, LeaveOutTheFirstAndWhatCannotBeTaken) {
  std::vector<Result> results{result_of(2), result_of(1), result_of(3, CUBLAS_STATUS_NOT_SUPPORTED)};
  const auto algorithms = [&] {
    std::vector<uint64_t> found;
    for (const Result& result : cuda::other_algorithms(result_of(1), results))
      found.push_back(result.algo.data[0]);
    return found;
  };
  EXPECT_EQ(algorithms(), (std::vector<uint64_t>{2}));
  for (uint64_t more = 4; more < 20; ++more) results.push_back(result_of(more));
  EXPECT_EQ(algorithms(), (std::vector<uint64_t>{2, 4, 5, 6, 7, 8, 9}));
}

TEST(MatmulCandidates, TellAllProblemsApart) {
  std::vector<MatmulProblem> problems(1);
  const auto add = [&](const std::function<void(MatmulProblem&)>& change) {
    problems.push_back(problems.front());
    change(problems.back());
  };
  add([](auto& problem) { problem.type = DataType::fp16; });
  for (const auto extent : {&MatmulProblem::batch, &MatmulProblem::m, &MatmulProblem::n, &MatmulProblem::k,
                            &MatmulProblem::a_stride, &MatmulProblem::b_stride})
    add([extent](auto& problem) { problem.*extent = 7; });
  for (const auto flag : {&MatmulProblem::transpose_a, &MatmulProblem::transpose_b, &MatmulProblem::tf32,
                          &MatmulProblem::deterministic})
    add([flag](auto& problem) { problem.*flag = !(problem.*flag); });
  add([](auto& problem) { problem.bias = 2; });
  add([](auto& problem) { problem.residual = 2; });
  add([](auto& problem) { problem.activation = "relu"; });
  add([](auto& problem) { problem.activation = "gelu"; });
  std::set<std::string> keys;
  for (const MatmulProblem& problem : problems) keys.insert(problem.key());
  EXPECT_EQ(keys.size(), problems.size());
  // Equal work of nodes whose operands come in another order.
  MatmulProblem swapped = problems.front();
  std::swap(swapped.a, swapped.b);
  EXPECT_EQ(swapped.key(), problems.front().key());
}

// Few rows and columns and many terms: what splits the sum is named first, and rounds parts of it, if it may.
TEST(CudaMatmul, SumsInFp32WhicheverAlgorithmIsTaken) {
  TESSERA_NEEDS_GPU();
  for (const char* type : {"fp16", "bf16", "fp32"}) {
    for (const char* shapes :
         {"a: {0}[32, 8192], input %b: {0}[8192, 32]", "a: {0}[512, 256], input %b: {0}[256, 384]"}) {
      const auto graph = parse_graph("graph g(input %" + fmt::format(fmt::runtime(shapes), type) +
                                     ") {\n  %y = matmul(%a, %b)\n  output y = %y\n}");
      const Node& node = *graph->nodes().front();
      const std::vector<Tensor> inputs = random_inputs(node, -1, 1);
      for (const bool deterministic : {true, false}) {
        const std::vector<std::string> names = expect_every_kernel(
            node, inputs, tolerances_of(node, inputs), {false, false}, gpu_or_null(), deterministic);
        EXPECT_EQ(names.front(), "cublaslt.matmul");
        EXPECT_TRUE(std::find(names.begin(), names.end(), "cublaslt.matmul#1") != names.end());
      }
    }
  }
}

TEST(CudaMatmul, TakesWhatTheTunerFoundFastestAndSaysTheTimes) {
  TESSERA_NEEDS_GPU();
  CompileOptions options;
  options.tune = true;
  const auto executable = compile(*parse_graph(kProduct), gpu_or_null(), options);
  const NodeReport& report = executable->nodes().front();
  EXPECT_TRUE(report.kernel.starts_with("cublaslt.matmul")) << report.kernel;
  size_t timed = 0;
  for (const CandidateReport& candidate : report.candidates) {
    const bool takes = candidate.refused.empty() && candidate.name.starts_with("cublaslt.");
    EXPECT_EQ(candidate.microseconds >= 0, takes) << candidate.name;
    if (takes) ++timed;
  }
  EXPECT_GT(timed, 1U);
}

}  // namespace
}  // namespace tessera::testing
