// Convolutions whose channels are each by themselves, and activations that convolutions end with.
#include <cmath>
#include <limits>

#include "device_cuda/convolution_case.h"
#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

const std::string kName = "generated.depthwise";

ConvolutionCase depthwise(const std::string& name, const Shape& x, const Shape& window, const Shape& y,
                          int64_t stride, int64_t low, int64_t high) {
  const auto list = [](const Shape& shape, int64_t channels) {
    return fmt::format("[{}, {}]", fmt::join(shape, ", "), channels);
  };
  const int64_t channels = x.back();
  return {name,
          fmt::format("[{}]", fmt::join(x, ", ")),
          fmt::format("[{}, {}, {}, 1]", channels, window[0], window[1]),
          list(y, channels),
          stride,
          low,
          high,
          channels};
}

// Layers of MobileNet and EfficientNet; items of 2 x 2, 1 x 2 and of one, that reach over the edges, one side
// of the image alone or past all of it; channels in several slices, in no whole ones, and in no
// whole accesses.
std::vector<ConvolutionCase> cases() {
  return {depthwise("ManyPixels", {5, 117, 119, 9}, {3, 3}, {5, 117, 119}, 1, 1, 1),
          depthwise("ManyPixelsStrided", {5, 233, 235, 9}, {5, 5}, {5, 117, 118}, 2, 2, 2),
          depthwise("Squares5", {8, 28, 28, 240}, {5, 5}, {8, 28, 28}, 1, 2, 2),
          depthwise("Strided5", {3, 14, 13, 672}, {5, 5}, {3, 7, 7}, 2, 2, 2),
          depthwise("LastLayer", {1, 7, 7, 960}, {3, 3}, {1, 7, 7}, 1, 1, 1),
          depthwise("UnevenPadding", {2, 9, 8, 24}, {3, 3}, {2, 4, 4}, 2, 0, 1),
          depthwise("OddChannels", {2, 6, 5, 7}, {3, 3}, {2, 6, 5}, 1, 1, 1),
          depthwise("HalfAnAccess", {2, 6, 5, 12}, {2, 3}, {2, 5, 3}, 1, 0, 0),
          depthwise("LargeWindow", {2, 12, 11, 96}, {7, 7}, {2, 12, 11}, 1, 3, 3),
          depthwise("BesideTheImage", {1, 2, 3, 16}, {5, 5}, {1, 6, 7}, 1, 4, 4)};
}

const std::vector<std::string> kActivations{"",     "relu",   "relu6", "clip {high = 3.0, low = -1.0}",
                                            "silu", "sigmoid"};

std::vector<std::unique_ptr<Graph>> graphs_of(const ConvolutionCase& own, const std::string& type) {
  std::vector<std::unique_ptr<Graph>> all;
  all.push_back(convolution_of(own, type));
  for (const std::string& activation : kActivations) all.push_back(fused_of(own, type, false, activation));
  all.push_back(fused_of(own, type, true, "relu"));
  return all;
}

int64_t terms_of(const Graph& graph) {
  const TensorType& weight = graph.find_input("weight")->type();
  return weight.element_count() / weight.static_shape().front();
}

// Weights so small that the sums are about as large as the bias, whatever the window, and biases that are not
// negative: activations that are flat far from zero or below it would hide what is wrong.
std::vector<Tensor> inputs_of(const Graph& graph) {
  std::vector<Tensor> inputs = exact_inputs(graph);
  Tensor& weight = inputs[1];
  const double scale = std::exp2(-std::round(std::log2(static_cast<double>(terms_of(graph))) / 2));
  for (int64_t i = 0; i < weight.size(); ++i) weight.set(i, scale * weight.at(i));
  if (inputs.size() == 2) return inputs;
  Tensor& bias = inputs[2];
  for (int64_t i = 0; i < bias.size(); ++i) bias.set(i, std::abs(bias.at(i)));
  return inputs;
}

// Sums are in fp32 and rounded once. The reference rounds the convolution, each sum after it and each step of
// the activation. What it rounds is as large as the result and what was added, 2 each, where the activation
// hands it on; where it is flat, less than 1 of it is left.
Tolerance tolerance_of(const Node& node, const Graph& graph) {
  const double u = unit_roundoff(node.output()->data_type());
  Tolerance tolerance =
      tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = terms_of(graph), .magnitude = 4});
  const auto operands = static_cast<double>(node.inputs().size());
  const bool sigmoid = node.body() != nullptr && node.body()->nodes().back()->operator_name() == "sigmoid";
  const double rounded = (sigmoid ? 0.25 : 1.1) * (operands + 1) * u;  // of a slope of at most so much
  tolerance.relative += rounded;
  tolerance.absolute += least_spacing(node.output()->data_type()) + rounded * (2 * (operands - 2) + 1);
  return tolerance;
}

class DepthwiseConvolution : public ::testing::TestWithParam<std::tuple<ConvolutionCase, std::string>> {};

TEST_P(DepthwiseConvolution, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [own, type] = GetParam();
  for (const std::unique_ptr<Graph>& graph : graphs_of(own, type)) {
    const Node& node = *graph->nodes().front();
    EXPECT_EQ(expect_every_kernel(node, inputs_of(*graph), {tolerance_of(node, *graph)},
                                  std::vector<bool>(node.inputs().size(), false), gpu_or_null(), true, kName),
              std::vector<std::string>{kName});
  }
}

TEST_P(DepthwiseConvolution, CudaCompile) {
  const auto& [own, type] = GetParam();
  for (const std::unique_ptr<Graph>& graph : graphs_of(own, type))
    EXPECT_GT(compile_candidates(*graph->nodes().front()), 0U);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, DepthwiseConvolution,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values("fp16", "bf16", "fp32")),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param);
                         });

TEST(DepthwiseConvolution, CudaKeepsNaN) {
  TESSERA_NEEDS_GPU();
  const ConvolutionCase own = cases()[5];
  for (const std::string& activation : kActivations) {
    const std::unique_ptr<Graph> graph = fused_of(own, "fp16", false, activation);
    const Node& node = *graph->nodes().front();
    std::vector<Tensor> inputs = inputs_of(*graph);
    inputs[0].set(8, std::numeric_limits<double>::quiet_NaN());
    expect_every_kernel(node, inputs, {tolerance_of(node, *graph)},
                        std::vector<bool>(node.inputs().size(), false), gpu_or_null(), true, kName);
  }
}

// What cuDNN ends with in place of a pass over memory: windows of one element and of more, with limits from
// one side and both.
TEST(ConvolutionActivations, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  for (const auto& own :
       {ConvolutionCase{"", "[4, 14, 14, 64]", "[96, 1, 1, 64]", "[4, 14, 14, 96]", 1, 0, 0},
        ConvolutionCase{"", "[2, 9, 9, 32]", "[64, 3, 3, 32]", "[2, 9, 9, 64]", 1, 1, 1}}) {
    for (const std::string type : {"fp16", "bf16"}) {
      for (const std::string& activation : kActivations) {
        const std::unique_ptr<Graph> graph = fused_of(own, type, false, activation);
        const Node& node = *graph->nodes().front();
        std::vector<Tensor> inputs = inputs_of(*graph);
        expect_every_kernel(node, inputs, {tolerance_of(node, *graph)},
                            std::vector<bool>(node.inputs().size(), false), gpu_or_null());
        inputs[0].set(5, std::numeric_limits<double>::quiet_NaN());
        expect_every_kernel(node, inputs, {tolerance_of(node, *graph)},
                            std::vector<bool>(node.inputs().size(), false), gpu_or_null());
      }
    }
  }
}

TEST(DepthwiseConvolution, CudaRefusesOthersAndSaysWhy) {
  const auto refusal = [](const ConvolutionCase& own, const std::string& type = "fp16") {
    const std::unique_ptr<Graph> graph = convolution_of(own, type);
    const Node& node = *graph->nodes().front();
    for (const KernelCandidate& candidate : Device::open("cuda:plan-h100")->candidates(node)) {
      if (candidate.name == kName) return candidate.refusal({.node = node, .frozen_inputs = {false, false}});
    }
    return std::string("not offered");
  };
  EXPECT_EQ(refusal(cases().front()), "");
  EXPECT_NE(refusal(cases().front(), "fp64").find("fp64"), std::string::npos);
  EXPECT_NE(refusal(depthwise("", {2, 12, 11, 96}, {9, 9}, {2, 12, 11}, 1, 4, 4)).find("9 x 9"),
            std::string::npos);
  const ConvolutionCase groups{"", "[2, 8, 8, 32]", "[32, 3, 3, 2]", "[2, 8, 8, 32]", 1, 1, 1, 16};
  EXPECT_NE(refusal(groups).find("each by itself"), std::string::npos);
}

}  // namespace
}  // namespace tessera::testing
