// Convolutions with what the GPU's passes put after them: statistics, and a sum of gradients with a mask.
#include <cmath>

#include "tessera/device/common/convolution_patterns.h"

#include "device_cuda/cuda_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/fusions.h"
#include "support/sum_tolerance.h"

namespace tessera::testing {
namespace {

struct FusedCase {
  std::string name;
  std::string text;
};

std::string window(int padding, int stride) {
  return fmt::format(
      "dilations = [1, 1], padding_high = [{0}, {0}], padding_low = [{0}, {0}], strides = [{1}, {1}]",
      padding, stride);
}

// Windows of 1 x 1 and 3 x 3, with and without strides, several tiles of pixels and of channels.
std::vector<FusedCase> statistics_cases() {
  const auto text = [](const std::string& x, const std::string& weight, const std::string& c,
                       const std::string& attributes) {
    return "graph g(input %x: " + x + ", input %weight: " + weight + ", input %scale: fp32[" + c +
           "], input %bias: fp32[" + c + "]) {\n  %c = convolution(%x, %weight) {" + attributes +
           "}\n  %y, %mean, %variance = batch_norm_training(%c, %scale, %bias)\n  output y = %y\n}\n";
  };
  return {{"Window1", text("fp16[4, 14, 14, 64]", "fp16[256, 1, 1, 64]", "256", window(0, 1))},
          {"Window1Strided", text("fp16[4, 14, 14, 64]", "fp16[128, 1, 1, 64]", "128", window(0, 2))},
          {"Window3", text("fp16[2, 9, 9, 32]", "fp16[32, 3, 3, 32]", "32", window(1, 1))},
          {"BrainFloat", text("bf16[4, 14, 14, 64]", "bf16[64, 1, 1, 64]", "64", window(0, 1))}};
}

std::vector<FusedCase> gradient_cases() {
  const auto text = [](const std::string& dy, const std::string& weight, const std::string& x,
                       const std::string& type, const std::string& attributes) {
    return "graph g(input %dy: " + dy + ", input %weight: " + weight + ", input %other: " + x +
           ", input %y: " + x +
           ") {\n  %d = convolution_data_gradient(%dy, %weight) {input_shape = " + x.substr(x.find('[')) +
           ", " + attributes + "}\n  %sum = add(%d, %other)\n  %zero = constant() {value = " + type +
           "[] (0)}\n  %open = greater(%y, %zero)\n  %dz = select(%open, %sum, %zero)\n  output dz = "
           "%dz\n}\n";
  };
  const std::string sum_alone =
      "graph g(input %dy: fp16[4, 14, 14, 64], input %weight: fp16[64, 1, 1, 256], input %other: "
      "fp16[4, 14, 14, 256]) {\n  %d = convolution_data_gradient(%dy, %weight) {input_shape = [4, 14, 14, "
      "256], " +
      window(0, 1) + "}\n  %sum = add(%d, %other)\n  output sum = %sum\n}\n";
  return {
      {"SumAlone", sum_alone},
      {"Window1",
       text("fp16[4, 14, 14, 64]", "fp16[64, 1, 1, 256]", "fp16[4, 14, 14, 256]", "fp16", window(0, 1))},
      {"Window3", text("fp16[2, 9, 9, 32]", "fp16[32, 3, 3, 32]", "fp16[2, 9, 9, 32]", "fp16", window(1, 1))},
      {"BrainFloat",
       text("bf16[4, 14, 14, 64]", "bf16[64, 1, 1, 64]", "bf16[4, 14, 14, 64]", "bf16", window(0, 1))}};
}

const Node& fused_node(Graph& graph, const std::string& kind) {
  EXPECT_TRUE(run_pass(graph, "fuse_patterns",
                       brings({backend::masked_data_gradient_pattern(),
                               backend::convolution_statistics_pattern([](const Node&) { return true; })})));
  verify(graph);
  for (const auto& node : graph.nodes()) {
    if (node->body() != nullptr && node->attributes().text("kind") == kind) return *node;
  }
  fail(ErrorCode::internal, "no node of kind {} in {}", kind, print(graph));
}

std::vector<std::string> expect_kernels(const Node& node, const std::vector<Tensor>& all,
                                        const Tolerances& tolerances, bool deterministic) {
  std::vector<Tensor> inputs;
  for (const Value* input : node.inputs()) inputs.push_back(all.at(input->index()));
  return expect_every_kernel(node, inputs, tolerances, std::vector<bool>(inputs.size(), false), gpu_or_null(),
                             deterministic);
}

class ConvolutionStatistics : public ::testing::TestWithParam<FusedCase> {};

// A device adds what it stored or what it had before rounding: each term of n may differ by its rounding.
TEST_P(ConvolutionStatistics, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const std::unique_ptr<Graph> graph = parse_graph(GetParam().text);
  const Node& node = fused_node(*graph, "convolution_statistics");
  const TensorType& y = node.output(0)->type();
  const int64_t channels = y.static_shape().back();
  const int64_t terms = graph->find_input("weight")->type().element_count() / channels;
  const double size = root_mean_square_of_uniform(2);
  const SummedTerms sums = summed_statistics({.terms = terms, .first_size = size, .second_size = size},
                                             y.data_type, y.element_count() / channels);
  const Tolerances tolerances{
      tolerance_for(OperatorClass::contraction, y.data_type, {.terms = terms, .magnitude = 4}),
      sum_tolerance(sums), square_sum_tolerance(sums)};
  const std::vector<Tensor> inputs = graph_inputs(*graph);
  expect_kernels(node, inputs, tolerances, false);
  // cuDNN's sums are in no fixed order; those of our kernel for windows of one position are.
  const std::string& name = GetParam().name;
  const bool own = name == "Window1" || name == "BrainFloat";
  const auto expected = own ? std::vector<std::string>{"generated.pointwise_convolution", "expanded"}
                            : std::vector<std::string>{"expanded"};
  EXPECT_EQ(expect_kernels(node, inputs, tolerances, true), expected);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, ConvolutionStatistics, ::testing::ValuesIn(statistics_cases()),
                         [](const auto& test) { return test.param.name; });

// The refusal of cuDNN for the last node of the graph.
std::string cudnn_refusal(const Graph& graph) {
  const Node& node = *graph.nodes().back();
  const KernelRequest request{.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
  for (const KernelCandidate& candidate : Device::open("cuda:plan-h100")->candidates(node)) {
    if (candidate.name == "cudnn.convolution") return candidate.refusal(request);
  }
  return "there is no candidate of cuDNN";
}

TEST(CudaConvolutions, AreNotCudnnsWhereItIsWrong) {
  const auto weight_gradient = [](int high) {
    return parse_graph(fmt::format(
        "graph g(input %x: fp32[2, 17, 16, 5], input %dy: fp32[2, 5, 5, 8]) {{\n"
        "  %dw = convolution_weight_gradient(%x, %dy) {{dilations = [1, 1], padding_high = [{0}, {0}], "
        "padding_low = [0, 0], strides = [3, 3], weight_shape = [8, 4, 4, 5]}}\n  output dw = %dw\n}}",
        high));
  };
  EXPECT_EQ(cudnn_refusal(*weight_gradient(0)), "");
  const std::string uneven = "cuDNN 9.14 computes other gradients where padding is uneven";
  EXPECT_EQ(cudnn_refusal(*weight_gradient(1)), uneven);
  const auto data_gradient = [](int high) {
    return parse_graph(fmt::format(
        "graph g(input %dy: fp32[3, 3, {0}, 16], input %weight: fp32[16, 3, 3, 1]) {{\n"
        "  %dx = convolution_data_gradient(%dy, %weight) {{dilations = [1, 1], input_shape = [3, 5, 4, 1], "
        "padding_high = [0, {1}], padding_low = [0, 0], strides = [1, 1]}}\n  output dx = %dx\n}}",
        2 + high, high));
  };
  EXPECT_EQ(cudnn_refusal(*data_gradient(0)), "");
  EXPECT_EQ(cudnn_refusal(*data_gradient(2)), uneven);
  const auto rectified = [](const std::string& type, int extent) {
    std::unique_ptr<Graph> graph = parse_graph(
        fmt::format("graph g(input %x: {0}[4, 14, 14, 64], input %weight: {0}[64, {1}, {1}, 64]) {{\n"
                    "  %c = convolution(%x, %weight) {{{2}}}\n  %y = relu(%c)\n  output y = %y\n}}",
                    type, extent, window(extent / 2, 1)));
    EXPECT_TRUE(run_pass(*graph, "fuse_patterns", brings({backend::contraction_pattern("convolution")})));
    return graph;
  };
  EXPECT_EQ(cudnn_refusal(*rectified("fp32", 1)),
            "the ReLU of cuDNN 9.14 makes 0 of NaN after windows of one element in fp32");
  EXPECT_EQ(cudnn_refusal(*rectified("fp32", 3)), "");
  EXPECT_EQ(cudnn_refusal(*rectified("fp16", 1)), "");
}

// The body runs where kernels would forget it.
TEST(ConvolutionStatistics, CudaRefusesABiasOfTheConvolutionItself) {
  const auto graph_of = [](const std::string& type, int64_t inputs, int64_t extent) {
    const std::string values = fmt::format("{}[2, 8, 8, {}]", type, inputs);
    const std::string weight = fmt::format("{0}[64, {1}, {1}, {2}]", type, extent, inputs);
    const std::string convolution_attributes = window(static_cast<int>(extent / 2), 1);
    return parse_graph(fmt::format(
        "graph g(input %x: {0}, input %weight: {1}, input %own: {2}[64]) {{\n"
        "  %y: {2}[2, 8, 8, 64], %sum: fp32[64], %squares: fp32[64] = fused(%x, %weight, %own) {{kind = "
        "\"convolution_statistics\", role_values = [0, 1, 2, 3], roles = [\"x\", \"weight\", \"bias\", "
        "\"y\"]}} body graph convolution_statistics(input %x: {0}, input %weight: {1}, "
        "input %own: {2}[64]) {{\n    %y = convolution(%x, %weight, %own) {{{3}}}\n"
        "    %wide = cast(%y) {{type = fp32}}\n    %sum = reduce_sum(%wide) {{axes = [0, 1, 2]}}\n"
        "    %square = square(%wide)\n    %squares = reduce_sum(%square) {{axes = [0, 1, 2]}}\n"
        "    output y0 = %y\n    output y1 = %sum\n    output y2 = %squares\n  }}\n"
        "  output y = %y\n  output sum = %sum\n  output squares = %squares\n}}",
        values, weight, type, convolution_attributes));
  };
  const std::shared_ptr<Device> card = Device::open("cuda:plan-h100");
  for (const auto& [inputs, extent] : {std::pair{64, 1}, {4, 3}}) {
    const std::unique_ptr<Graph> graph = graph_of("fp16", inputs, extent);
    const Node& node = *graph->nodes().front();
    for (const bool deterministic : {true, false}) {
      const KernelRequest request{
          .node = node, .frozen_inputs = {false, false, false}, .deterministic = deterministic};
      for (const KernelCandidate& candidate : card->candidates(node)) {
        const bool body = candidate.name == "expanded";
        EXPECT_EQ(candidate.refusal(request).empty(), body) << candidate.name << candidate.refusal(request);
      }
    }
    if (gpu_or_null() == nullptr) continue;
    const double size = root_mean_square_of_uniform(2);
    const int64_t terms = inputs * extent * extent;
    const SummedTerms sums = summed_statistics({.terms = terms, .first_size = size, .second_size = size},
                                               DataType::fp16, 2 * 8 * 8);
    Tolerance result =
        tolerance_for(OperatorClass::contraction, DataType::fp16, {.terms = terms + 1, .magnitude = 4});
    EXPECT_EQ(expect_every_kernel(node, graph_inputs(*graph),
                                  {result, sum_tolerance(sums), square_sum_tolerance(sums)},
                                  {false, false, false}, gpu_or_null()),
              std::vector<std::string>{"expanded"});
  }
}

class MaskedDataGradient : public ::testing::TestWithParam<FusedCase> {};

TEST_P(MaskedDataGradient, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const std::unique_ptr<Graph> graph = parse_graph(GetParam().text);
  const Node& node = fused_node(*graph, "convolution_data_gradient");
  const TensorType& dz = node.output(0)->type();
  const TensorType& weight = graph->find_input("weight")->type();
  const int64_t terms = weight.element_count() / weight.static_shape().back();
  Tolerance tolerance =
      tolerance_for(OperatorClass::contraction, dz.data_type, {.terms = terms, .magnitude = 4});
  // The reference rounds the data gradient before the sum.
  tolerance.absolute += unit_roundoff(dz.data_type) * 4 * 4 * std::sqrt(static_cast<double>(terms));
  expect_kernels(node, graph_inputs(*graph), {tolerance}, true);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, MaskedDataGradient, ::testing::ValuesIn(gradient_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera::testing
