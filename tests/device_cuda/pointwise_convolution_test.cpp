// Pointwise convolutions with the rest of the batch normalizations before them.
#include "device/cuda/convolution/pointwise_convolution.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tessera/device/common/convolution_patterns.h"
#include "tessera/passes/fuse.h"

#include "device_cuda/convolution_case.h"
#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/fusions.h"
#include "support/sum_tolerance.h"

namespace tessera::testing {
namespace {

struct NormalizedCase {
  std::string name;
  std::string pixels;  // "3, 7, 9"
  int64_t inputs = 256;
  int64_t outputs = 64;
  int norms = 1;
  bool residual = true;
  std::string type = "fp16";

  bool tf32() const { return type == "fp32"; }
};

// As use_convolution_statistics makes it of convolutions of one window position.
std::unique_ptr<Graph> fused(const NormalizedCase& own) {
  const std::string window =
      "{dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}";
  const auto tensor = [&](int64_t channels) {
    return fmt::format("{}[{}, {}]", own.type, own.pixels, channels);
  };
  std::string text = fmt::format(
      "graph g(input %residual: {0}, input %weight: {1}[{2}, 1, 1, {3}], input %scale: "
      "fp32[{2}], input %bias: fp32[{2}]",
      tensor(own.inputs), own.type, own.outputs, own.inputs);
  for (int norm = 0; norm < own.norms; ++norm)
    text += fmt::format(
        ", input %u{0}: {1}, input %former{0}: {2}[{3}, 1, 1, 8], input %scale{0}: fp32[{3}], input "
        "%bias{0}: fp32[{3}]",
        norm, tensor(8), own.type, own.inputs);
  text += ") {\n";
  for (int norm = 0; norm < own.norms; ++norm)
    text += fmt::format(
        "  %x{0} = convolution(%u{0}, %former{0}) {1}\n"
        "  %n{0}, %mean{0}, %variance{0} = batch_norm_training(%x{0}, %scale{0}, %bias{0})\n",
        norm, window);
  const std::string other = own.norms == 2 ? "%n1" : "%residual";
  text += own.norms == 2 || own.residual ? "  %s = add(%n0, " + other + ")\n  %y = relu(%s)\n"
                                         : "  %y = relu(%n0)\n";
  text += "  %c = convolution(%y, %weight) " + window +
          "\n  %n, %mean, %variance = batch_norm_training(%c, %scale, %bias)\n  output n = %n\n  output y = "
          "%y\n}\n";
  const PassContext context =
      brings({backend::normalized_convolution_pattern([](const Node&, size_t, bool) { return true; }),
              alternative(backend::convolution_statistics_pattern([](const Node&) { return true; }))});
  std::unique_ptr<Graph> graph = parse_graph(text);
  EXPECT_TRUE(run_pass(*graph, "fuse_patterns", context));
  verify(*graph);
  return graph;
}

const Node& fused_node(const Graph& graph, std::string_view kind = "normalized_convolution") {
  for (const auto& node : graph.nodes()) {
    if (node->body() != nullptr && node->attributes().text("kind") == kind) return *node;
  }
  fail(ErrorCode::internal, "no such node in {}", print(graph));
}

// Every width of what a warp makes; items that are not whole; more items than blocks; two slices of the
// outputs.
std::vector<NormalizedCase> cases() {
  return {{"Residual", "3, 7, 9"},
          {"TwoNormalizations", "2, 8, 8", 256, 64, 2},
          {"Alone", "1, 5, 5", 64, 256, 1, false},
          {"TwoSlices", "2, 9, 11", 128, 512, 1, false},
          {"ManyInputs", "2, 5, 7", 512, 128},
          {"ManyItems", "5, 31, 33", 64, 64},
          {"EightWarpsOfOutputs", "1, 3, 5", 256, 128},
          {"BrainFloat", "3, 7, 9", 256, 64, 2, true, "bf16"},
          {"Tf32", "3, 7, 9", 256, 64, 1, true, "fp32"},
          {"Tf32Alone", "5, 31, 33", 64, 256, 1, false, "fp32"},
          {"Tf32TwoNormalizations", "2, 9, 11", 256, 128, 2, false, "fp32"}};
}

// The root mean square of what the convolution reads: of one or two normalizations x * factor + (bias - mean
// * factor), perhaps with a residual, the half that is positive.
double size_of_normalized(const NormalizedCase& own) {
  const double drawn = root_mean_square_of_uniform(2) * root_mean_square_of_uniform(2);
  const double square =
      own.norms * (2 * drawn * drawn + drawn) + (own.norms == 1 && own.residual ? drawn : 0);
  return std::sqrt(square / 2);
}

// Of the sums of the result and of its squares, `error` being that of what the convolution reads.
Tolerances statistics_tolerances(const Node& node, const SummedProducts& products, double error = 0) {
  const TensorType& result = node.output(0)->type();
  const int64_t pixels = result.element_count() / result.static_shape().back();
  SummedTerms terms = summed_statistics(products, result.data_type, pixels);
  terms.error += products.size() * error;
  return {sum_tolerance(terms), square_sum_tolerance(terms)};
}

// The kernel of this name first, with factors that are rounded to the nearest number of TF32; then all
// others, as some of cuDNN's cut them off.
void expect_kernel_and_others(const NormalizedCase& own, const Node& node, const std::string& name,
                              const std::function<Tolerances(Factors factors)>& tolerances) {
  const std::vector<Tensor> inputs = with_exact_weights(node, random_inputs(node, -2, 2));
  const std::vector<bool> frozen(node.inputs().size(), false);
  const auto expect = [&](Factors factors, const std::string& only) {
    return expect_every_kernel(node, inputs, tolerances(factors), frozen, gpu_or_null(), true, only,
                               own.tf32());
  };
  expect(own.tf32() ? Factors::rounded : Factors::exact, name);
  EXPECT_EQ(expect(own.tf32() ? Factors::cut_off : Factors::exact, "").front(), name);
}

class NormalizedConvolution : public ::testing::TestWithParam<NormalizedCase> {};

TEST_P(NormalizedConvolution, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const NormalizedCase& own = GetParam();
  const std::unique_ptr<Graph> graph = fused(own);
  const Node& node = fused_node(*graph);
  const DataType type = node.output(0)->data_type();
  const double u = unit_roundoff(type);
  // A product and a bias, twice, are below 20; the result sums products of that and of 2.
  constexpr double kLargest = 20;
  const double largest = 2 * kLargest * std::sqrt(static_cast<double>(own.inputs));
  Tolerance result =
      tolerance_for(OperatorClass::contraction, type, {.terms = own.inputs, .magnitude = 2 * kLargest});
  result.absolute += u * largest;  // where y rounds to the other side
  if (own.tf32()) result.absolute += 2 * 0x1p-11 * largest;
  expect_kernel_and_others(own, node, "generated.normalized_convolution", [&](Factors factors) {
    const SummedProducts products{.terms = own.inputs,
                                  .first_size = size_of_normalized(own),
                                  .second_size = root_mean_square_of_uniform(2),
                                  .factors = factors};
    Tolerances all{result};
    for (const Tolerance& sum : statistics_tolerances(node, products, u)) all.push_back(sum);
    all.push_back({.absolute = 4 * u * kLargest, .relative = 2 * u});
    return all;
  });
}

TEST_P(NormalizedConvolution, CudaCompile) {
  EXPECT_GT(compile_candidates(fused_node(*fused(GetParam())), GetParam().tf32()), 0U);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, NormalizedConvolution, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

struct ResidualCase {
  std::string name;
  std::string pixels;
  int64_t inputs = 64;
  int64_t outputs = 256;
  std::string type = "fp16";
};

// As fuse_patterns makes it in inference.
std::unique_ptr<Graph> residual_of(const ResidualCase& own) {
  std::unique_ptr<Graph> graph = parse_graph(fmt::format(
      "graph g(input %x: {0}[{1}, {2}], input %weight: {0}[{3}, 1, 1, {2}], input %bias: {0}[{3}], input "
      "%residual: {0}[{1}, {3}]) {{\n  %c = convolution(%x, %weight) {{dilations = [1, 1], padding_high = "
      "[0, 0], "
      "padding_low = [0, 0], strides = [1, 1]}}\n  %b = add(%c, %bias)\n  %s = add(%b, %residual)\n"
      "  %y = relu(%s)\n  output y = %y\n}}\n",
      own.type, own.pixels, own.inputs, own.outputs));
  EXPECT_TRUE(run_pass(*graph, "fuse_patterns", brings({backend::contraction_pattern("convolution")})));
  return graph;
}

// Results that the cache does not hold, of items that are not whole; two slices of the outputs.
std::vector<ResidualCase> residual_cases() {
  return {{"OneSlice", "21, 57, 59", 64, 256}, {"TwoSlices", "17, 46, 45", 64, 512, "bf16"}};
}

class ResidualConvolution : public ::testing::TestWithParam<ResidualCase> {};

TEST_P(ResidualConvolution, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const ResidualCase& own = GetParam();
  const std::unique_ptr<Graph> graph = residual_of(own);
  const Node& node = *graph->nodes().front();
  const Tolerance tolerance = tolerance_for(OperatorClass::contraction, node.output()->data_type(),
                                            {.terms = own.inputs, .magnitude = 4});
  // The reference rounds each sum.
  const double u = unit_roundoff(node.output()->data_type());
  const Tolerance rounded{
      .absolute = tolerance.absolute + 2 * u * 4 * 4 * std::sqrt(static_cast<double>(own.inputs)),
      .relative = tolerance.relative};
  const std::string name = "generated.residual_convolution";
  EXPECT_EQ(expect_every_kernel(node, random_inputs(node, -2, 2), {rounded},
                                std::vector<bool>(node.inputs().size(), false), gpu_or_null(), true, name),
            std::vector<std::string>{name});
}

TEST_P(ResidualConvolution, CudaCompile) {
  EXPECT_GT(compile_candidates(*residual_of(GetParam())->nodes().front()), 0U);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, ResidualConvolution, ::testing::ValuesIn(residual_cases()),
                         [](const auto& test) { return test.param.name; });

// Without a normalization in front.
std::vector<NormalizedCase> cases_of_statistics() {
  std::vector<NormalizedCase> cases;
  for (const auto& [prefix, type] : {std::pair{"Tf32", "fp32"}, {"Half", "fp16"}, {"BrainFloat", "bf16"}}) {
    const auto add = [&, prefix = prefix, type = type](const std::string& name, const std::string& pixels,
                                                       int64_t inputs, int64_t outputs) {
      cases.push_back({prefix + name, pixels, inputs, outputs, 0, false, type});
    };
    add("OneSlice", "3, 7, 9", 64, 256);
    add("TwoSlices", "5, 31, 33", 128, 512);
    add("TwoTeams", "5, 31, 33", 256, 64);
  }
  return cases;
}

std::unique_ptr<Graph> with_statistics(const NormalizedCase& own) {
  std::unique_ptr<Graph> graph =
      parse_graph(fmt::format("graph g(input %x: {3}[{0}, {1}], input %weight: {3}[{2}, 1, 1, {1}], input "
                              "%scale: fp32[{2}], input %bias: "
                              "fp32[{2}]) {{\n  %c = convolution(%x, %weight) {{dilations = [1, 1], "
                              "padding_high = [0, 0], padding_low = [0, 0], "
                              "strides = [1, 1]}}\n  %n, %mean, %variance = batch_norm_training(%c, %scale, "
                              "%bias)\n  output n = %n\n}}\n",
                              own.pixels, own.inputs, own.outputs, own.type));
  const PassContext context =
      brings({backend::convolution_statistics_pattern([](const Node&) { return true; })});
  EXPECT_TRUE(run_pass(*graph, "fuse_patterns", context));
  verify(*graph);
  return graph;
}

class PointwiseStatistics : public ::testing::TestWithParam<NormalizedCase> {};

TEST_P(PointwiseStatistics, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const NormalizedCase& own = GetParam();
  const std::unique_ptr<Graph> graph = with_statistics(own);
  const Node& node = fused_node(*graph, "convolution_statistics");
  const DataType type = node.output(0)->data_type();
  const double largest = 4 * 4 * std::sqrt(static_cast<double>(own.inputs));  // four deviations
  Tolerance result = tolerance_for(OperatorClass::contraction, type, {.terms = own.inputs, .magnitude = 4});
  if (own.tf32()) result.absolute += 2 * 0x1p-11 * largest;
  expect_kernel_and_others(own, node, "generated.pointwise_convolution", [&](Factors factors) {
    const double size = root_mean_square_of_uniform(2);
    const Tolerances sums = statistics_tolerances(
        node, {.terms = own.inputs, .first_size = size, .second_size = size, .factors = factors});
    return Tolerances{result, sums[0], sums[1]};
  });
}

TEST_P(PointwiseStatistics, CudaCompile) {
  const std::unique_ptr<Graph> graph = with_statistics(GetParam());
  EXPECT_GT(compile_candidates(fused_node(*graph, "convolution_statistics"), GetParam().tf32()), 0U);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, PointwiseStatistics, ::testing::ValuesIn(cases_of_statistics()),
                         [](const auto& test) { return test.param.name; });

TEST(PointwiseStatistics, CudaRefusesOthersAndSaysWhy) {
  const auto refusal = [](int64_t inputs, int64_t outputs, bool tf32, const std::string& type = "fp32",
                          bool deterministic = true) {
    const std::unique_ptr<Graph> graph = with_statistics({"", "2, 9, 11", inputs, outputs, 0, false, type});
    const Node& node = fused_node(*graph, "convolution_statistics");
    const KernelCandidate first = Device::open("cuda:plan-h100")->candidates(node).front();
    EXPECT_EQ(first.name, "generated.pointwise_convolution");
    return first.refusal(
        {.node = node, .frozen_inputs = {false, false}, .deterministic = deterministic, .tf32 = tf32});
  };
  EXPECT_EQ(refusal(128, 512, true), "");
  EXPECT_NE(refusal(128, 512, false).find("exact fp32"), std::string::npos);
  EXPECT_EQ(refusal(128, 512, false, "fp16"), "");
  EXPECT_NE(refusal(128, 512, false, "fp16", false).find("left to cuDNN"), std::string::npos);
  EXPECT_NE(refusal(256, 1024, true).find("in slices of 128"), std::string::npos);
  EXPECT_NE(refusal(512, 128, true).find("channels of the result"), std::string::npos);
}

TEST(NormalizedConvolution, CudaRefusesOthersAndSaysWhy) {
  const auto refusal = [](const NormalizedCase& own) {
    const std::unique_ptr<Graph> graph = fused(own);
    const Node& node = fused_node(*graph);
    const KernelCandidate first = Device::open("cuda:plan-h100")->candidates(node).front();
    EXPECT_EQ(first.name, "generated.normalized_convolution");
    return first.refusal({node, std::vector<bool>(node.inputs().size(), false)});
  };
  EXPECT_EQ(refusal({"", "2, 3, 3"}), "");
  EXPECT_NE(refusal({"", "2, 3, 3", 96, 64}).find("96 channels of x"), std::string::npos);
  EXPECT_NE(refusal({"", "2, 3, 3", 512, 256}).find("256 channels of the result"), std::string::npos);
  EXPECT_NE(refusal({"", "2, 3, 3", 256, 512}).find("512 channels of the result"), std::string::npos);
}

// Whatever else is taken compiles: the kernel asserts that its warps divide the outputs among them.
TEST(NormalizedConvolution, CudaTakesOnlyOutputsThatItsWarpsDivide) {
  const std::shared_ptr<Device> card = Device::open("cuda:plan-h100");
  for (const int64_t inputs : {64, 128, 256, 512}) {
    for (const int64_t outputs : {7, 16, 32, 48, 64, 80, 96, 100, 112, 128, 192, 256, 320, 384}) {
      const NormalizedCase own{"", "2, 3, 3", inputs, outputs};
      const std::unique_ptr<Graph> graph = fused(own);
      const Node& node = fused_node(*graph);
      const std::string refusal =
          card->candidates(node).front().refusal({node, std::vector<bool>(node.inputs().size(), false)});
      const bool whole = inputs <= 128   ? outputs % 64 == 0
                         : inputs == 256 ? outputs == 64 || outputs == 128 || outputs == 256
                                         : outputs == 64 || outputs == 128;
      EXPECT_EQ(refusal.empty(), whole) << inputs << " to " << outputs << ": " << refusal;
      if (!refusal.empty()) continue;
      EXPECT_GT(compile_candidates(node), 0U) << inputs << " to " << outputs;
    }
  }
}

TEST(NormalizedConvolution, CudaTakesWhatTheCacheDoesNotHold) {
  const cuda::GpuTraits gpu = cuda::Context("h100").traits();
  const auto takes = [&](const std::string& pixels, const std::string& window, const std::string& type) {
    const int64_t lost = window == "1, 1" ? 0 : 2;
    const std::unique_ptr<Graph> graph =
        parse_graph(fmt::format("graph g(input %x: {0}[{1}, 56, 56, 256], input %weight: {0}[64, {2}, 256]) "
                                "{{\n  %y: {0}[{1}, {3}, {3}, 64] = "
                                "convolution(%x, %weight) {{dilations = [1, 1], padding_high = [0, 0], "
                                "padding_low = [0, 0], strides = [1, "
                                "1]}}\n  output y = %y\n}}\n",
                                type, pixels, window, 56 - lost));
    return cuda::takes_normalized_input(*graph->nodes().front(), 1, true, false, gpu);
  };
  EXPECT_TRUE(takes("64", "1, 1", "fp16"));
  EXPECT_TRUE(takes("64", "1, 1", "bf16"));
  EXPECT_FALSE(takes("2", "1, 1", "fp16"));
  EXPECT_FALSE(takes("64", "3, 3", "fp16"));
  EXPECT_FALSE(takes("64", "1, 1", "fp32"));
}

// The fewer where runs must not differ: after windows, statistics are cuDNN's.
TEST(NormalizedConvolution, CudaPlanOfResnetHasThem) {
  const auto count = [](bool deterministic) {
    return count_of_kernel(
        *planned_training("resnet50", 256, {.precision = Precision::fp16, .deterministic = deterministic}),
        "generated.normalized_convolution");
  };
  EXPECT_EQ(count(false), 9u);
  EXPECT_EQ(count(true), 6u);
}

}  // namespace
}  // namespace tessera::testing
