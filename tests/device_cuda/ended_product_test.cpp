// Matrix products with elementwise work after them as one kernel.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

struct EndCase {
  std::string name;
  int64_t m = 1, n = 8, k = 8;
  bool transpose_b = false;
  std::string work;  // from %v on, the product
};

// A forward half, which keeps what the backward half reads, and that with a bias's gradient.
const std::string kActivation =
    "%s = add(%v, %bias) %y = gelu(%s) {approximate = true}\n  output s = %s\n  output y = %y";
const std::string kGradient =
    "%t = tanh(%z) %y = multiply(%v, %t) %g = reduce_sum(%y) {axes = [0]}\n  output y = %y\n  output g = %g";

// Tiles that are whole and broken in both directions, fewer and more steps than there are stages, b stored in
// both ways, blocks that have several tiles each.
std::vector<EndCase> cases() {
  return {{"OneStep", 256, 256, 64, false, kActivation},
          {"Broken", 300, 264, 200, false, kActivation},
          {"BrokenColumns", 130, 520, 72, true, kActivation},
          {"ManySteps", 100, 40, 712, true, kGradient},
          {"Gradient", 300, 264, 200, true, kGradient},
          {"TilesOfABlock", 40001, 8, 16, false, kActivation},
          {"ColumnsOfABlock", 70, 17416, 8, true, kGradient},
          {"TwoSums", 260, 72, 136, false,
           "%y = multiply(%v, %z) %g = reduce_sum(%y) {axes = [0]} %h = reduce_sum(%v) {axes = [0]}\n"
           "  output y = %y\n  output g = %g\n  output h = %h"},
          {"SumsAlone", 260, 72, 136, false,
           "%y = multiply(%v, %z) %g = reduce_sum(%y) {axes = [0]}\n  output g = %g"},
          {"OfRows", 140, 96, 136, true, "%y = multiply(%v, %row)\n  output y = %y\n  output v = %v"},
          {"Dropped", 140, 96, 136, false,
           "%d = dropout(%v, %counter) {rate = 0.25, stream = 5} %y = add(%d, %z)\n  output y = %y"}};
}

std::unique_ptr<Graph> ended_graph(const EndCase& own, DataType type) {
  std::string text = fmt::format(
      "graph g(input %a: $T[{0}, {2}], parameter %b: $T[{3}], parameter %bias: $T[{1}], input %z: $T[{0}, "
      "{1}], "
      "input %row: $T[{0}, 1], input %counter: int64[2]) {{\n"
      "  %v = matmul(%a, %b) {{transpose_b = {4}}}\n  {5}\n}}",
      own.m, own.n, own.k,
      own.transpose_b ? fmt::format("{}, {}", own.n, own.k) : fmt::format("{}, {}", own.k, own.n),
      own.transpose_b, own.work);
  const std::string name(to_string(type));
  for (size_t at = text.find("$T"); at != std::string::npos; at = text.find("$T")) text.replace(at, 2, name);
  std::unique_ptr<Graph> graph = parse_graph(text);
  PassContext context;
  context.target = Device::open("cuda:plan-h200")->pass_target({});
  context.target.ends_products = [](const Node&, const Node&) { return true; };  // however small
  for (const char* pass : {"fuse_patterns", "fuse_elementwise", "end_products"})
    run_pass(*graph, pass, context);
  verify(*graph);
  return graph;
}

KernelRequest request_of(const Node& node) {
  return {.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
}

using EndTest = std::tuple<EndCase, DataType>;
class EndedProduct : public ::testing::TestWithParam<EndTest> {};

// Which kernels there are, and their text, needs no GPU.
TEST_P(EndedProduct, IsACandidateBesideTheTwoApart) {
  const auto& [own, type] = GetParam();
  const auto graph = ended_graph(own, type);
  ASSERT_EQ(graph->nodes().size(), 1u) << print(*graph);
  const Node& node = *graph->nodes().front();
  EXPECT_EQ(node.attributes().text("kind"), "ended_product");
  const std::vector<KernelCandidate> candidates = Device::open("cuda:plan-h200")->candidates(node);
  ASSERT_GE(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].name, "unfused");
  for (const size_t place : {1, 2}) {
    EXPECT_EQ(candidates[place].name, place == 1 ? "generated.ended_product.3" : "generated.ended_product.7");
    EXPECT_EQ(candidates[place].refusal(request_of(node)), "");
    EXPECT_TRUE(candidates[place].only_tuned);
  }
  // The texts of both types differ in a name alone.
  if (type == DataType::bf16 || own.name == "OneStep") {
    EXPECT_GT(compile_candidates(node), 0);
  }
}

TEST_P(EndedProduct, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [own, type] = GetParam();
  const auto graph = ended_graph(own, type);
  const Node& node = *graph->nodes().front();
  // The product is rounded to its type before anything is added to it, and a sum is of as many products as
  // there are rows. Of factors below 1 a product is hardly more than two roots of its terms.
  const double rounding = unit_roundoff(type) * 2 * std::sqrt(static_cast<double>(own.k));
  std::vector<Tolerance> tolerances;
  for (const auto& output : node.outputs()) {
    const bool sum = output->shape().size() == 1;
    tolerances.push_back(
        tolerance_for(OperatorClass::contraction, type, {.terms = sum ? own.k * own.m : own.k}));
    tolerances.back().absolute += rounding * (sum ? std::sqrt(static_cast<double>(own.m)) : 1);
  }
  expect_every_kernel(node, random_inputs(node, -1, 1), tolerances,
                      std::vector<bool>(node.inputs().size(), false), gpu_or_null(), true);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, EndedProduct,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(DataType::fp16, DataType::bf16)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

TEST(EndedProducts, LeaveWhatTheKernelDoesNotTake) {
  const auto ended = [](const std::string& device, const std::string& type, int64_t m,
                        const std::string& work) {
    const auto graph = parse_graph(fmt::format(
        "graph g(input %a: {0}[{1}, 1024], input %b: {0}[1024, 1024], input %z: {0}[{1}, 1024]) {{\n"
        "  %v = matmul(%a, %b)\n  {2}\n  output y = %y\n}}",
        type, m, work));
    PassContext context;
    context.target = Device::open(device)->pass_target({});
    for (const char* pass : {"fuse_elementwise", "end_products"}) run_pass(*graph, pass, context);
    return std::any_of(graph->nodes().begin(), graph->nodes().end(), [](const auto& node) {
      return node->body() != nullptr && node->attributes().text("kind") == "ended_product";
    });
  };
  EXPECT_TRUE(ended("cuda:plan-h200", "bf16", 4096, "%y = multiply(%v, %z)"));
  EXPECT_FALSE(ended("cuda:plan-a100", "bf16", 4096, "%y = multiply(%v, %z)"));
  EXPECT_FALSE(ended("cuda:plan-h200", "fp32", 4096, "%y = multiply(%v, %z)"));
  EXPECT_FALSE(ended("cuda:plan-h200", "bf16", 64, "%y = multiply(%v, %z)"));
  EXPECT_FALSE(
      ended("cuda:plan-h200", "bf16", 4096, "%u = multiply(%v, %z) %y = reduce_sum(%u) {axes = [1]}"));
  EXPECT_FALSE(
      ended("cuda:plan-h200", "bf16", 4096, "%u = multiply(%v, %z) %y = reduce_max(%u) {axes = [0]}"));
}

// Where nobody measures, a step is planned as if there were no such kernel.
TEST(EndedProducts, AreTheTwoApartWithoutATuner) {
  const auto graph = parse_graph(
      R"(graph g(input %a: bf16[4096, 1024], input %b: bf16[1024, 1024], input %z: bf16[4096, 1024]) {
    %v = matmul(%a, %b)
    %y = multiply(%v, %z)
    output y = %y
  })");
  const auto executable = planned(*graph, {});
  EXPECT_EQ(count_of_kernel(*executable, "cublaslt.matmul"), 1u);
  EXPECT_EQ(count_of_kernel(*executable, "generated.cluster"), 1u);
}

}  // namespace
}  // namespace tessera::testing
