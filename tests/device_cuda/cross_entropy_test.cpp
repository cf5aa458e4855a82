// The loss, its gradient and what was likeliest by one kernel, which reads a row once.
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "tessera/device/common/cross_entropy_pattern.h"
#include "tessera/device/common/roles.h"

#include "device_cuda/cuda_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/fusions.h"
#include "support/operator_tolerance.h"

namespace tessera::testing {
namespace {

struct LossCase {
  std::string name;
  std::string type;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t classes = 0;
  double smoothing = 0;
  bool loss = true;
  bool likeliest = true;
  bool gradient = true;
};

// Rows of fewer elements than an access, of whole accesses and of odd lengths, so that they begin anywhere;
// for each number of threads; longer than shared memory; each of the results that may be missing.
std::vector<LossCase> loss_cases() {
  return {{"OneElement", "bf16", 9, 1, 1},
          {"LessThanAnAccess", "fp16", 9, 5, 5, 0.1},
          {"PaddedToAnAccess", "fp16", 9, 8, 5, 0.1},
          {"Whole", "fp32", 5, 1024, 1024},
          {"Odd", "fp32", 5, 1003, 1003, 0.1},
          {"WithoutASearch", "bf16", 11, 2047, 2047, 0.1, true, false},
          {"WithoutTheLoss", "bf16", 11, 2047, 2040, 0.1, false, true},
          {"OfEvaluation", "bf16", 11, 2048, 2043, 0, true, true, false},
          {"OfSmoothedEvaluation", "bf16", 5, 50264, 50257, 0.1, true, true, false},
          {"OfMoreThreads", "fp16", 9, 5003, 5003},
          {"OfMostThreads", "bf16", 5, 50264, 50257, 0.1},
          {"OfFp64", "fp64", 3, 3001, 2990, 0.1},
          {"LongerThanSharedMemory", "fp32", 3, 60001, 60001, 0.1}};
}

// As one node.
std::unique_ptr<Graph> fused_graph(const LossCase& own) {
  const std::string options = fmt::format("{{classes = {}, ignored_label = {}, smoothing = {}}}", own.classes,
                                          own.classes, own.smoothing);
  std::unique_ptr<Graph> graph = parse_graph(fmt::format(
      R"(graph g(input %x: {0}[{1}, {2}], input %labels: int32[{1}], input %dl: {3}[{1}]) {{
        %loss = cross_entropy(%x, %labels) {4}
        %cut = slice(%x) {{limits = [{1}, {5}], starts = [0, 0], strides = [1, 1]}}
        %best = argmax(%cut) {{axis = 1}}
        %d = cross_entropy_gradient(%x, %labels, %dl) {4}
        {6}
        {7}
        {8}
      }})",
      own.type, own.rows, own.columns, own.type == "fp64" ? "fp64" : "fp32", options, own.classes,
      own.loss ? "output loss = %loss" : "", own.likeliest ? "output best = %best" : "",
      own.gradient ? "output d = %d" : ""));
  run_pass(*graph, "remove_dead_code", {});
  run_pass(*graph, "fuse_patterns",
           brings({backend::cross_entropy_pattern(), backend::evaluated_cross_entropy_pattern()}));
  return graph;
}

class CudaCrossEntropy : public ::testing::TestWithParam<LossCase> {
 protected:
  std::unique_ptr<Graph> graph_ = fused_graph(GetParam());
  const Node& node_ = *graph_->nodes().front();
};

TEST_P(CudaCrossEntropy, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const LossCase& own = GetParam();
  std::vector<Tensor> inputs = random_inputs(node_, -6, 6);
  // The last that is a class counts as much as all others of every second row; in the other rows the
  // likeliest is the first of two equals. What comes after the classes is larger. One row counts nothing but
  // for the search.
  for (int64_t row = 0; row < own.rows; ++row) {
    const auto set = [&](int64_t column, double value) { inputs[0].set(row * own.columns + column, value); };
    const double largest = row % 2 == 0 ? 6 + std::log(own.classes) : 7;
    set(own.columns - 1, largest + 2);
    set(own.classes - 1, largest);
    if (row % 2 == 1) set(own.classes / 2, largest);
  }
  inputs[1] = random_tensor(DataType::int32, {own.rows}, 0, static_cast<double>(own.classes) - 0.5, 5);
  inputs[1].set(own.rows - 1, static_cast<double>(own.classes));
  Tolerances tolerances;
  for (const auto& output : node_.body()->outputs()) {
    const Node& maker = *output.value->producer();
    std::vector<Tensor> operands(inputs.begin(),
                                 inputs.begin() + static_cast<int64_t>(maker.inputs().size()));
    if (maker.operator_name() == "argmax") {
      tolerances.emplace_back();
    } else {
      tolerances.push_back(tolerances_of(maker, operands).front());
    }
  }
  expect_every_kernel(node_, inputs, tolerances, std::vector<bool>(inputs.size(), false), gpu_or_null());
}

TEST_P(CudaCrossEntropy, IsOneKernelBesideItsBody) {
  ASSERT_EQ(graph_->nodes().size(), 1U) << print(*graph_);
  const KernelRequest request{.node = node_,
                              .frozen_inputs = std::vector<bool>(node_.inputs().size(), false)};
  std::vector<std::string> willing;
  for (const KernelCandidate& candidate : Device::open("cuda:plan-h100")->candidates(node_)) {
    if (candidate.refusal(request).empty()) willing.push_back(candidate.name);
  }
  EXPECT_EQ(willing, (std::vector<std::string>{"generated.cross_entropy", "expanded"}));
}

TEST_P(CudaCrossEntropy, Compiles) {
  EXPECT_GT(compile_candidates(node_), 0U);
}

// The gradient, and nothing else, takes the logits' memory.
TEST_P(CudaCrossEntropy, MayOverwriteTheLogits) {
  cuda::Context card("h100");
  const KernelRequest request{.node = node_,
                              .frozen_inputs = std::vector<bool>(node_.inputs().size(), false)};
  const std::unique_ptr<Kernel> kernel = cuda::cuda_candidates(node_, card).front().create(request);
  const std::optional<size_t> gradient = backend::output_in_role(node_, "logits_gradient");
  for (size_t output = 0; output < node_.outputs().size(); ++output) {
    for (size_t input = 0; input < node_.inputs().size(); ++input)
      EXPECT_EQ(kernel->may_overwrite(output, input), output == gradient && input == 0)
          << output << ", " << input;
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaCrossEntropy, ::testing::ValuesIn(loss_cases()),
                         [](const auto& test) { return test.param.name; });

// Of -inf, of one element that is not, with +inf, and with several NaN, of which the first is what is
// likeliest, also where the label is ignored.
TEST(CudaCrossEntropies, KnowRowsThatAreNotFinite) {
  TESSERA_NEEDS_GPU();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const LossCase own{"", "fp32", 6, 1003, 1003};
  Tensor x = Tensor::full(DataType::fp32, {own.rows, own.columns}, -kInfinity);
  const auto set = [&](int64_t row, int64_t place, float value) { x.set(row * own.columns + place, value); };
  set(1, 1000, 2);
  set(2, 3, 1);
  set(2, own.columns - 1, kInfinity);
  for (const int64_t row : {3, 4}) {
    set(row, 2, kInfinity);
    set(row, 900, kNaN);
    set(row, 700, kNaN);
  }
  for (int64_t place = 0; place < own.columns; ++place) set(5, place, kNaN);
  const auto ignored = static_cast<int32_t>(own.classes);
  const std::vector<Tensor> inputs{x, Tensor::from<int32_t>({own.rows}, {1, 1000, 3, 3, ignored, 2}),
                                   Tensor::full(DataType::fp32, {own.rows}, 1)};
  const Tolerance tolerance{.absolute = 1e-6, .relative = 1e-6};
  expect_every_kernel(*fused_graph(own)->nodes().front(), inputs, {tolerance, {}, tolerance},
                      {false, false, false}, gpu_or_null());
  LossCase evaluated = own;
  evaluated.gradient = false;
  expect_every_kernel(*fused_graph(evaluated)->nodes().front(), {inputs[0], inputs[1]}, {tolerance, {}},
                      {false, false}, gpu_or_null());
}

}  // namespace
}  // namespace tessera::testing
