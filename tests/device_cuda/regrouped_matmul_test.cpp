// Products whose operands repeat some of their leading axes.
#include <algorithm>

#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"
#include "support/operator_tolerance.h"

namespace tessera::testing {
namespace {

struct RegroupedCase {
  std::string name;
  std::string a;
  std::string b;
  bool transpose_a = false;
  bool transpose_b = false;
};

std::unique_ptr<Graph> graph_of(const RegroupedCase& own, const std::string& type) {
  return parse_graph(
      fmt::format("graph g(input %a: {0}{1}, input %b: {0}{2}) {{\n  %y = matmul(%a, %b) {{transpose_a = "
                  "{3}, transpose_b = "
                  "{4}}}\n  output y = %y\n}}",
                  type, own.a, own.b, own.transpose_a, own.transpose_b));
}

std::vector<RegroupedCase> cases() {
  return {{"OneMatrixAHeadForAllTexts", "[3, 4, 8, 16]", "[4, 16, 24]"},
          {"TransposedWeights", "[3, 4, 8, 16]", "[4, 24, 16]", false, true},
          {"TransposedRows", "[3, 4, 16, 8]", "[1, 4, 16, 24]", true, false},
          {"BothTransposed", "[2, 3, 16, 8]", "[3, 24, 16]", true, true},
          {"AxesBetween", "[2, 3, 5, 7, 9]", "[2, 1, 5, 9, 11]"},
          {"RepeatedRows", "[4, 8, 16]", "[3, 4, 16, 24]"},
          {"EachRepeatsAnother", "[3, 1, 8, 16]", "[1, 4, 16, 24]"}};
}

class RegroupedMatmul : public ::testing::TestWithParam<RegroupedCase> {};

// Which kernels there are needs no GPU.
TEST_P(RegroupedMatmul, ComesBeforeThePlainLoop) {
  const auto graph = graph_of(GetParam(), "bf16");
  const Node& node = *graph->nodes().front();
  std::vector<std::string> willing;
  for (const KernelCandidate& candidate : Device::open("cuda:plan-h100")->candidates(node)) {
    if (candidate.refusal({.node = node, .frozen_inputs = {false, false}}).empty())
      willing.push_back(candidate.name);
  }
  const auto at = [&](const char* name) { return std::ranges::find(willing, name); };
  ASSERT_NE(at("regrouped"), willing.end());
  EXPECT_LT(at("regrouped"), at("generated.matmul"));
  EXPECT_EQ(at("cublaslt.matmul"), willing.end());
}

TEST_P(RegroupedMatmul, EveryKernel) {
  TESSERA_NEEDS_GPU();
  for (const char* type : {"fp16", "bf16", "fp32", "fp64"}) {
    const auto graph = graph_of(GetParam(), type);
    const Node& node = *graph->nodes().front();
    const std::vector<Tensor> inputs = random_inputs(node, -1, 1);
    const std::vector<std::string> names =
        expect_every_kernel(node, inputs, tolerances_of(node, inputs), {false, false}, gpu_or_null(), true);
    EXPECT_TRUE(std::ranges::find(names, "regrouped") != names.end()) << type;
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, RegroupedMatmul, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST(RegroupedMatmuls, LeaveWhatOneCallDescribes) {
  for (const RegroupedCase& own :
       {RegroupedCase{"", "[3, 4, 8, 16]", "[16, 24]"}, RegroupedCase{"", "[3, 4, 8, 16]", "[3, 4, 16, 24]"},
        RegroupedCase{"", "[8, 16]", "[3, 4, 16, 24]"}}) {
    const auto graph = graph_of(own, "bf16");
    const Node& node = *graph->nodes().front();
    for (const KernelCandidate& candidate : Device::open("cuda:plan-h100")->candidates(node)) {
      if (candidate.name != "regrouped") continue;
      EXPECT_EQ(candidate.refusal({.node = node, .frozen_inputs = {false, false}}),
                "its operands repeat no axes, or all");
    }
  }
}

}  // namespace
}  // namespace tessera::testing
