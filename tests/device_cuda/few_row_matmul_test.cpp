// Products of a few rows, with the layer norm before them and the epilogue after them.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "tessera/device/common/attention_patterns.h"
#include "tessera/tasks/language_model.h"
#include "tessera/train/step.h"

#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

struct FewRowCase {
  std::string name;
  std::string shape;  // of a, without the depth
  int64_t rows = 1;
  int64_t columns = 24;
  int64_t depth = 64;
  bool normalizes = false;
  std::string chain = "%y = add(%v, %bias)";  // from %v to %y
};

const std::string kResidual = "%s = add(%v, %bias) %y = add(%s, %residual)";

// Whole warps of columns and a broken one, depths of one access and of several steps, rows that are
// normalized together and one after the other.
std::vector<FewRowCase> cases() {
  return {
      {"OneRow", "1", 1, 24, 64},
      {"OneRowWithResidual", "1, 1", 1, 1000, 1024, false, kResidual},
      {"Deep", "1", 1, 40, 4096},
      {"DeeperThanAStep", "1", 1, 20, 8128},
      {"ManyColumns", "2", 2, 9000, 128, false, "%s = add(%v, %bias) %y = relu(%s)"},
      {"EightRows", "8", 8, 100, 520, false, kResidual},
      {"RowsOfABatch", "5, 1", 5, 64, 256},
      {"Normalized", "1, 1", 1, 1000, 1024, true, "%s = add(%v, %bias) %y = gelu(%s) {approximate = true}"},
      {"NormalizedBroken", "1, 1", 1, 136, 1480, true},
      {"NormalizedRows", "8", 8, 72, 768, true, kResidual},
      {"NormalizedDeepRows", "3", 3, 72, 2048, true}};
}

std::unique_ptr<Graph> few_row_graph(const FewRowCase& own, DataType type) {
  std::string text = fmt::format(
      "graph g(input %a: $T[{0}, {1}], parameter %w: $T[{2}, {1}], parameter %bias: $T[{2}], input "
      "%residual: "
      "$T[{0}, {2}], parameter %scale: fp32[{1}], parameter %shift: fp32[{1}]) {{\n  {3}\n"
      "  %v = matmul({4}, %w) {{transpose_b = true}}\n  {5}\n  output y = %y\n}}",
      own.shape, own.depth, own.columns,
      own.normalizes ? "%n, %mean, %inverse = layer_norm(%a, %scale, %shift) {axes = 1, epsilon = 1e-5}" : "",
      own.normalizes ? "%n" : "%a", own.chain);
  const std::string name(to_string(type));
  for (size_t at = text.find("$T"); at != std::string::npos; at = text.find("$T")) text.replace(at, 2, name);
  std::unique_ptr<Graph> graph = parse_graph(text);
  PassContext context;
  context.target = Device::open("cuda:plan-h100")->pass_target({});
  run_pass(*graph, "fuse_patterns", context);
  run_pass(*graph, "remove_dead_code", context);
  verify(*graph);
  return graph;
}

// The last of each row and of what it is multiplied with counts for much, so that no kernel leaves it out
// unnoticed, and so do the bias and the residual: where roundings of what is normalized add up, so much that
// the last rounding shows beside them.
std::vector<Tensor> inputs_of(const FewRowCase& own, const Node& node) {
  const double added = own.normalizes ? 32 : 8;
  std::vector<Tensor> result = random_inputs(node, -1, 1);
  for (size_t i = 0; i < result.size(); ++i) {
    Tensor& tensor = result[i];
    const std::string& name = node.input(i)->name();
    const int64_t last = tensor.shape().back();
    for (int64_t j = 0; j < tensor.size(); ++j) {
      if (name == "bias" || name == "residual") tensor.set(j, added * tensor.at(j));
      if ((name == "a" || name == "w") && (j + 1) % last == 0) tensor.set(j, 3 + tensor.at(j));
      if (name == "scale" && j + 1 == last) tensor.set(j, 1);
    }
  }
  return result;
}

// What is normalized is rounded to the type before it is multiplied: each number by up to a unit of about
// one, which add up at random, and the last, which counts for much, by a unit of what it brings. Sums of 16
// bits are rounded once more between two kernels.
Tolerance tolerance_of(const FewRowCase& own, DataType type) {
  Tolerance result = tolerance_for(OperatorClass::contraction, type,
                                   {.terms = own.depth, .magnitude = own.normalizes ? 4.0 : 1.0});
  if (!is_half(type)) return result;
  constexpr double kDeviations = 2, kLast = 20;
  const double u = unit_roundoff(type);
  if (own.normalizes) {
    result.absolute += u * (kDeviations * std::sqrt(static_cast<double>(own.depth)) + kLast);
  } else {
    result.relative += 2 * u;
  }
  return result;
}

using FewRowTest = std::tuple<FewRowCase, DataType>;
class FewRowMatmul : public ::testing::TestWithParam<FewRowTest> {};

KernelRequest request_of(const Node& node) {
  return {.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
}

// Which kernels there are, and their text, needs no GPU.
TEST_P(FewRowMatmul, IsTheFirstChoice) {
  const auto& [own, type] = GetParam();
  const auto graph = few_row_graph(own, type);
  ASSERT_EQ(graph->nodes().size(), 1);
  const Node& node = *graph->nodes().front();
  EXPECT_EQ(node.attributes().text("kind"), own.normalizes ? "normalized_matmul" : "matmul");
  const KernelCandidate first = Device::open("cuda:plan-h100")->candidates(node).front();
  EXPECT_EQ(first.name, "generated.few_row_matmul");
  EXPECT_EQ(first.refusal(request_of(node)), "");
  EXPECT_GT(compile_candidates(node), 0);
}

TEST_P(FewRowMatmul, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [own, type] = GetParam();
  const auto graph = few_row_graph(own, type);
  const Node& node = *graph->nodes().front();
  const std::vector<Tensor> inputs = inputs_of(own, node);
  std::vector<bool> frozen;
  for (const Value* input : node.inputs()) frozen.push_back(input->role() == InputRole::parameter);
  for (const std::vector<bool>& given : {std::vector<bool>(inputs.size(), false), frozen})
    expect_every_kernel(node, inputs, {tolerance_of(own, type)}, given, gpu_or_null(), true);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, FewRowMatmul,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(DataType::fp32, DataType::fp16,
                                                              DataType::bf16)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

TEST(FewRowMatmuls, LeaveOtherProducts) {
  const auto first = [](const std::string& a, const std::string& b, bool transpose_b, bool tf32 = false) {
    const auto graph = parse_graph(
        fmt::format("graph g(input %a: {}, input %b: {}) {{\n  %y = matmul(%a, %b) {{transpose_b = {}}}\n  "
                    "output y = %y\n}}",
                    a, b, transpose_b));
    const Node& node = *graph->nodes().front();
    KernelRequest request = request_of(node);
    request.tf32 = tf32;
    for (const KernelCandidate& candidate : Device::open("cuda:plan-h100")->candidates(node)) {
      if (candidate.refusal(request).empty()) return candidate.name;
    }
    return std::string();
  };
  EXPECT_EQ(first("bf16[8, 64]", "bf16[32, 64]", true), "generated.few_row_matmul");
  EXPECT_EQ(first("bf16[9, 64]", "bf16[32, 64]", true), "cublaslt.matmul");
  EXPECT_EQ(first("bf16[1, 64]", "bf16[64, 32]", false), "cublaslt.matmul");
  EXPECT_EQ(first("bf16[1, 8, 64]", "bf16[2, 32, 64]", true), "cublaslt.matmul");
  EXPECT_EQ(first("fp32[1, 64]", "fp32[32, 64]", true), "generated.few_row_matmul");
  EXPECT_EQ(first("fp32[1, 64]", "fp32[32, 64]", true, true), "cublaslt.matmul");
  EXPECT_EQ(first("fp64[1, 64]", "fp64[32, 64]", true), "cublaslt.matmul");
}

// A token costs seven launches a layer: nothing is cast, copied or added by itself. Attention reads the keys
// that there are so far, and no score a number from memory that hides others.
TEST(FewRowMatmuls, AreMostOfAPassOverAToken) {
  const models::DecoderConfig network{
      .vocabulary = 512, .width = 128, .layers = 4, .heads = 2, .inner = 256, .positions = 64};
  const auto layers = static_cast<size_t>(network.layers);
  const train::StepGraph pass =
      train::build_frozen(tasks::language_model_passes(network, 48), train::Reading::inference,
                          {{"tokens", 1}}, {}, {}, DataType::bf16);
  const auto executable = planned(*pass.graph, {.precision = Precision::bf16, .frozen = true});
  EXPECT_EQ(count_of_kernel(*executable, "generated.few_row_matmul"), 4 * layers + 1);
  EXPECT_EQ(count_of_kernel(*executable, "generated.few_query_attention"), layers);
  EXPECT_EQ(count_of_kernel(*executable, "generated.set_rows"), 2 * layers);
  const size_t launches =
      count_nodes(*executable, [](const NodeReport& node) { return !node.once && !node.candidates.empty(); });
  constexpr size_t kBeforeAndAfter = 12;  // the layers
  EXPECT_LE(launches, 7 * layers + kBeforeAndAfter);
  size_t attentions = 0;
  for (const auto& node : pass.graph->nodes()) {
    if (node->operator_name() != "attention") continue;
    ++attentions;
    EXPECT_EQ(backend::bias_of_attention(*node), nullptr);
    EXPECT_NE(backend::key_lengths_of_attention(*node), nullptr);
  }
  EXPECT_EQ(attentions, layers);
}

}  // namespace
}  // namespace tessera::testing
