// Matrix products with elementwise work before and after them as one kernel.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

struct ProductCase {
  std::string name;
  int64_t m = 1, n = 8, k = 8;
  bool transpose_b = false;
  std::string after;        // from %v on, the product
  std::string before = {};  // up to %f, the first factor; empty: that is %a
  double low = -1, high = 1;
  int64_t sequences = 1;  // that the rows are of
};

// A forward half, which keeps what the backward half reads, and that with a bias's gradient.
const std::string kActivation =
    "%s = add(%v, %bias) %y = gelu(%s) {approximate = true}\n  output s = %s\n  output y = %y";
const std::string kGradient =
    "%t = tanh(%z) %y = multiply(%v, %t) %g = reduce_sum(%y) {axes = [0]}\n  output y = %y\n  output g = %g";
const std::string kProductAlone = "output v = %v";

const std::string kScaled =
    "%c = cast(%a) {type = fp32} %d = multiply(%c, %scale) %e = add(%d, %shift) %r = relu(%e) "
    "%f = cast(%r) {type = $T}";
const std::string kGated = "%e = silu(%a) %f = multiply(%e, %w)";

// Tiles that are whole and broken in both directions, fewer and more steps than there are stages, b stored in
// both ways, blocks that have several tiles each.
std::vector<ProductCase> cases_after() {
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
          {"SumsOfRows", 300, 264, 200, true,
           "%y = multiply(%v, %z) %g = reduce_sum(%y) {axes = [1]}\n  output y = %y\n  output g = %g"},
          {"TwoSumsOfRows", 40001, 8, 16, false,
           "%y = multiply(%v, %bias) %g = reduce_sum(%y) {axes = [1]} %q = tanh(%y) "
           "%h = reduce_sum(%q) {axes = [1], keep_dimensions = true}\n  output g = %g\n  output h = %h"},
          {"OfRows", 140, 96, 136, true, "%y = multiply(%v, %row)\n  output y = %y\n  output v = %v"},
          {"Dropped", 140, 96, 136, false,
           "%d = dropout(%v, %counter) {rate = 0.25, stream = 5} %y = add(%d, %z)\n  output y = %y"}};
}

// The same before the product, alone and with work after it. A logarithm is infinite where there are zeros
// beyond the matrix; of sums of such products, which are all of one sign, no row would be missed.
std::vector<ProductCase> cases_before() {
  return {{"BegunOneStep", 256, 256, 64, false, kProductAlone, "%f = relu(%a)"},
          {"BegunBroken", 300, 200, 200, false, kProductAlone, "%f = gelu(%a) {approximate = true}"},
          {"BegunManySteps", 100, 40, 712, true, kProductAlone, kScaled},
          {"BegunTilesOfABlock", 40001, 16, 40, false, kProductAlone, kGated},
          {"BegunTilesOfThreeSteps", 20001, 64, 136, true, kProductAlone, kScaled},
          {"BegunByAMatrix", 130, 72, 264, true, kActivation, kGated},
          {"BegunGradient", 300, 256, 456, true, kGradient, kScaled},
          {"BegunInfinity", 140, 96, 136, false, kProductAlone, "%f = log(%a)", 0.5, 1.5},
          {"BegunInfinityTransposed", 400, 200, 328, true, kProductAlone, "%f = log(%a)", 0.5, 1.5},
          {"BegunOfRows", 260, 64, 136, true, kProductAlone,
           "%e = multiply(%a, %row) %f = multiply(%e, %column)"},
          {"BegunOfSequences", 300, 96, 136, false, kProductAlone, "%f = multiply(%a, %sequence)", -1, 1, 3},
          {"BegunWithColumnsBeyond", 200, 520, 136, false, kActivation, kScaled},
          {"BegunDropped", 140, 96, 136, false, kProductAlone,
           "%f = dropout(%a, %counter) {rate = 0.25, stream = 5}"}};
}

std::vector<ProductCase> cases() {
  std::vector<ProductCase> all = cases_after();
  for (ProductCase& own : cases_before()) all.push_back(std::move(own));
  return all;
}

std::unique_ptr<Graph> clustered_graph(const ProductCase& own, DataType type) {
  const std::string rows = own.sequences == 1 ? fmt::format("{}", own.m)
                                              : fmt::format("{}, {}", own.sequences, own.m / own.sequences);
  std::string text = fmt::format(
      "graph g(input %a: $T[{0}, {2}], input %w: $T[{0}, {2}], parameter %scale: fp32[{2}], "
      "parameter %shift: fp32[{2}], parameter %column: $T[{2}], input %sequence: $T[{5}, 1, {2}], "
      "parameter %b: $T[{3}], parameter %bias: $T[{1}], input %z: $T[{0}, {1}], input %row: $T[{0}, 1], "
      "input %counter: int64[2]) {{\n"
      "  {6}\n  %v = matmul(%{7}, %b) {{transpose_b = {4}}}\n  {8}\n}}",
      rows, own.n, own.k,
      own.transpose_b ? fmt::format("{}, {}", own.n, own.k) : fmt::format("{}, {}", own.k, own.n),
      own.transpose_b, own.sequences, own.before, own.before.empty() ? "a" : "f", own.after);
  const std::string name(to_string(type));
  for (size_t at = text.find("$T"); at != std::string::npos; at = text.find("$T")) text.replace(at, 2, name);
  std::unique_ptr<Graph> graph = parse_graph(text);
  PassContext context;
  context.target = Device::open("cuda:plan-h200")->pass_target({});
  // However small.
  context.target.clusters_products = [](const Node* before, const Node&, const Node* after) {
    return before != nullptr || after != nullptr;
  };
  for (const char* pass : {"fuse_patterns", "fuse_elementwise", "cluster_products"})
    run_pass(*graph, pass, context);
  verify(*graph);
  return graph;
}

KernelRequest request_of(const Node& node) {
  return {.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
}

using ProductTest = std::tuple<ProductCase, DataType>;
class ProductCluster : public ::testing::TestWithParam<ProductTest> {};

// Which kernels there are, and their text, needs no GPU.
TEST_P(ProductCluster, IsACandidateBesideAllApart) {
  const auto& [own, type] = GetParam();
  const auto graph = clustered_graph(own, type);
  ASSERT_EQ(graph->nodes().size(), 1u) << print(*graph);
  const Node& node = *graph->nodes().front();
  EXPECT_EQ(node.attributes().text("kind"), "product_cluster");
  std::vector<std::string> willing;
  for (const KernelCandidate& candidate : Device::open("cuda:plan-h200")->candidates(node)) {
    if (candidate.name == "expanded") break;  // and others that every node has
    if (!candidate.refusal(request_of(node)).empty()) continue;
    willing.push_back(candidate.name);
    EXPECT_EQ(candidate.only_tuned, candidate.name != "unfused") << candidate.name;
  }
  std::vector<std::string> expected{"unfused", "generated.product_cluster.3", "generated.product_cluster.7"};
  if (!own.before.empty()) {
    expected = {"unfused", "generated.product_cluster.begun"};
    if (own.after != kProductAlone) expected.emplace_back("work_before_apart");
  }
  EXPECT_EQ(willing, expected);
  // The texts of both types differ in a name alone.
  if (type == DataType::bf16 || own.name == "OneStep" || own.name == "BegunOneStep") {
    EXPECT_GT(compile_candidates(node), 0);
  }
}

TEST_P(ProductCluster, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [own, type] = GetParam();
  const auto graph = clustered_graph(own, type);
  const Node& node = *graph->nodes().front();
  // The product is rounded to its type before anything is added to it, and a sum is of as many products as
  // there are rows or columns. Of factors below 1 a product is hardly more than two roots of its terms.
  const double rounding = unit_roundoff(type) * 2 * std::sqrt(static_cast<double>(own.k));
  std::vector<Tolerance> tolerances;
  for (const auto& output : node.outputs()) {
    const int64_t added = own.m * own.n / output->type().element_count();  // results of each number
    tolerances.push_back(tolerance_for(OperatorClass::contraction, type, {.terms = own.k * added}));
    tolerances.back().absolute += rounding * std::sqrt(static_cast<double>(added));
  }
  expect_every_kernel(node, random_inputs(node, own.low, own.high), tolerances,
                      std::vector<bool>(node.inputs().size(), false), gpu_or_null(), true);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, ProductCluster,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(DataType::fp16, DataType::bf16)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

// Whether the passes make one node of the work around a product of matrices [m, 1024] and [1024, n].
bool is_clustered(const std::string& device, const std::string& type, int64_t m, int64_t n,
                  const std::string& work) {
  const auto graph = parse_graph(
      fmt::format("graph g(input %a: {0}[{1}, 1024], input %w: {0}[{1}, 1024], input %b: {0}[1024, {2}], "
                  "input %x: {0}[2, {1}, 1024], input %wide: fp32[{1}, 1024], input %z: {0}[{1}, {2}]) {{\n"
                  "  {3}\n  output y = %y\n}}",
                  type, m, n, work));
  PassContext context;
  context.target = Device::open(device)->pass_target({});
  for (const char* pass : {"fuse_elementwise", "cluster_products"}) run_pass(*graph, pass, context);
  return std::any_of(graph->nodes().begin(), graph->nodes().end(), [](const auto& node) {
    return node->body() != nullptr && node->attributes().text("kind") == "product_cluster";
  });
}

TEST(ProductClusters, LeaveWorkAfterThemThatTheKernelDoesNotTake) {
  const auto ended = [](const std::string& device, const std::string& type, int64_t m,
                        const std::string& work) {
    return is_clustered(device, type, m, 1024, "%v = matmul(%a, %b) " + work);
  };
  EXPECT_TRUE(ended("cuda:plan-h200", "bf16", 4096, "%y = multiply(%v, %z)"));
  EXPECT_FALSE(ended("cuda:plan-a100", "bf16", 4096, "%y = multiply(%v, %z)"));
  EXPECT_FALSE(ended("cuda:plan-h200", "fp32", 4096, "%y = multiply(%v, %z)"));
  EXPECT_FALSE(ended("cuda:plan-h200", "bf16", 64, "%y = multiply(%v, %z)"));
  EXPECT_TRUE(
      ended("cuda:plan-h200", "bf16", 4096, "%u = multiply(%v, %z) %y = reduce_sum(%u) {axes = [1]}"));
  EXPECT_FALSE(
      ended("cuda:plan-h200", "bf16", 4096, "%u = multiply(%v, %z) %y = reduce_sum(%u) {axes = [0, 1]}"));
  EXPECT_FALSE(
      ended("cuda:plan-h200", "bf16", 4096, "%u = multiply(%v, %z) %y = reduce_max(%u) {axes = [0]}"));
}

TEST(ProductClusters, LeaveWorkBeforeThemThatTheKernelDoesNotTake) {
  const auto begun = [](const std::string& work, int64_t n = 256, int64_t m = 4096,
                        const std::string& type = "bf16", const std::string& device = "cuda:plan-h200") {
    return is_clustered(device, type, m, n, work + " %y = matmul(%f, %b)");
  };
  EXPECT_TRUE(begun("%f = relu(%a)"));
  EXPECT_TRUE(begun("%f = multiply(%a, %w)", 64));
  EXPECT_FALSE(begun("%f = relu(%a)", 264));
  EXPECT_FALSE(begun("%f = relu(%a)", 56));
  EXPECT_FALSE(begun("%f = relu(%a)", 100));
  EXPECT_FALSE(begun("%f = relu(%a)", 256, 64));
  EXPECT_FALSE(begun("%f = relu(%a)", 256, 4096, "fp32"));
  EXPECT_FALSE(begun("%f = relu(%a)", 256, 4096, "bf16", "cuda:plan-a100"));
  // Of a factor in fp32 alone, beside one, and of rows that are added up.
  EXPECT_FALSE(begun("%f = cast(%wide) {type = bf16}"));
  EXPECT_FALSE(begun("%c = cast(%a) {type = fp32} %d = add(%c, %wide) %f = cast(%d) {type = bf16}"));
  EXPECT_FALSE(begun("%d = multiply(%x, %a) %f = reduce_sum(%d) {axes = [0]}"));
}

// Work after them is taken where it would not be alone.
TEST(ProductClusters, HaveWorkOnBothSides) {
  EXPECT_FALSE(
      is_clustered("cuda:plan-h200", "bf16", 4096, 128, "%v = matmul(%a, %b) %y = multiply(%v, %z)"));
  EXPECT_TRUE(is_clustered("cuda:plan-h200", "bf16", 4096, 128,
                           "%f = relu(%a) %v = matmul(%f, %b) %y = multiply(%v, %z)"));
}

// Where nobody measures, a step is planned as if there were no such kernel.
TEST(ProductClusters, AreTheTwoApartWithoutATuner) {
  for (const char* work :
       {"%v = matmul(%a, %b) %y = multiply(%v, %z)", "%f = multiply(%a, %w) %y = matmul(%f, %b)"}) {
    const auto graph = parse_graph(fmt::format(
        "graph g(input %a: bf16[4096, 1024], input %w: bf16[4096, 1024], input %b: bf16[1024, 256], "
        "input %z: bf16[4096, 256]) {{\n  {}\n  output y = %y\n}}",
        work));
    const auto executable = planned(*graph, {});
    EXPECT_EQ(executable->nodes().size(), 2u) << work;
    EXPECT_EQ(count_of_kernel(*executable, "cublaslt.matmul"), 1u) << work;
    EXPECT_EQ(count_of_kernel(*executable, "generated.cluster"), 1u) << work;
  }
}

}  // namespace
}  // namespace tessera::testing
