#include <string>

#include "tessera/ops/functions.h"

#include "device_cpu/cpu_case.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

struct ConvolutionCase {
  std::string name;
  Shape x;
  Shape weight;
  ops::ConvolutionOptions options = {};
};

std::vector<ConvolutionCase> cases() {
  return {
      {"pointwise", {2, 5, 7, 16}, {24, 1, 1, 16}},
      {"pointwise_odd", {1, 3, 3, 5}, {7, 1, 1, 5}},
      {"pointwise_strided", {2, 7, 7, 16}, {32, 1, 1, 16}, {.strides = {2, 2}}},
      {"pointwise_in_blocks", {3, 13, 11, 80}, {70, 1, 1, 80}},
      {"pointwise_of_many_pixels", {7, 11, 13, 48}, {112, 1, 1, 48}},
      {"pointwise_many_outputs", {2, 9, 10, 32}, {300, 1, 1, 32}},
      {"pointwise_channels_apart", {2, 9, 10, 528}, {560, 1, 1, 528}},
      {"window", {2, 9, 8, 16}, {16, 3, 3, 16}, {.padding_low = {1, 1}}},
      {"squares_cut", {6, 13, 10, 24}, {40, 3, 3, 24}, {.padding_low = {1, 1}}},
      {"squares_unpadded", {12, 9, 11, 17}, {21, 3, 3, 17}},
      {"squares_far_outside",
       {16, 6, 5, 16},
       {16, 3, 3, 16},
       {.padding_low = {0, 3}, .padding_high = {4, 2}}},
      {"squares_in_blocks", {4, 41, 37, 16}, {16, 3, 3, 16}, {.padding_low = {1, 1}}},
      {"squares_many_channels", {17, 7, 7, 150}, {90, 3, 3, 150}, {.padding_low = {1, 1}}},
      {"squares_channels_apart", {64, 3, 3, 304}, {304, 3, 3, 304}},
      {"window_strided", {1, 11, 9, 8}, {16, 3, 3, 8}, {.strides = {2, 2}, .padding_low = {1, 1}}},
      {"window_strided_in_blocks",
       {3, 21, 19, 32},
       {40, 3, 3, 32},
       {.strides = {2, 2}, .padding_low = {1, 1}}},
      {"window_strided_channels_apart",
       {4, 19, 15, 192},
       {160, 3, 3, 192},
       {.strides = {2, 2}, .padding_low = {1, 1}}},
      {"stem", {1, 17, 19, 3}, {16, 7, 7, 3}, {.strides = {2, 2}, .padding_low = {3, 3}}},
      {"odd_channels", {2, 6, 5, 3}, {5, 3, 2, 3}, {.padding_low = {1, 0}, .padding_high = {0, 1}}},
      {"uneven_padding",
       {1, 8, 8, 4},
       {6, 3, 3, 4},
       {.strides = {2, 3}, .padding_low = {0, 2}, .padding_high = {2, 1}}},
      {"dilated", {1, 12, 13, 8}, {8, 3, 3, 8}, {.padding_low = {2, 3}, .dilations = {2, 3}}},
      {"grouped", {2, 6, 6, 12}, {18, 3, 3, 4}, {.padding_low = {1, 1}, .groups = 3}},
      {"depthwise", {1, 9, 9, 16}, {16, 3, 3, 1}, {.strides = {2, 2}, .padding_low = {1, 1}, .groups = 16}},
      {"one_axis", {2, 21, 6}, {10, 5, 6}, {.strides = {2}, .padding_low = {2}}},
      {"one_axis_dilated_groups", {2, 17, 8}, {4, 3, 4}, {.padding_low = {2}, .dilations = {2}, .groups = 2}},
      {"three_axes", {1, 5, 6, 7, 4}, {8, 3, 3, 2, 4}, {.strides = {1, 2, 1}, .padding_low = {1, 1, 0}}},
      {"three_axes_strided",
       {3, 7, 9, 8, 16},
       {8, 3, 2, 3, 16},
       {.strides = {2, 1, 2}, .padding_low = {1, 0, 2}}},
      {"whole_image", {3, 4, 4, 8}, {10, 4, 4, 8}},
      {"pointwise_strided_few_channels", {1, 20, 20, 8}, {8, 1, 1, 8}, {.strides = {2, 2}}},
      {"pointwise_strided_tail", {3, 18, 10, 7}, {32, 1, 1, 7}, {.strides = {2, 2}}},
      {"dilated_tail",
       {1, 9, 32, 24},
       {16, 3, 3, 24},
       {.padding_low = {2, 2}, .padding_high = {}, .dilations = {2, 2}}},
      {"dilated_depthwise",
       {1, 9, 33, 8},
       {8, 3, 3, 1},
       {.padding_low = {2, 2}, .padding_high = {}, .dilations = {2, 2}, .groups = 8}},
      {"ragged_end", {1, 10, 10, 4}, {4, 3, 3, 4}, {.strides = {4, 4}}},
  };
}

class Convolution : public ::testing::TestWithParam<std::tuple<ConvolutionCase, DataType>> {
 protected:
  // Of fp16 few images: without instructions for it oneDNN computes one number after the other, seconds for
  // each case, and large shapes are about tiles, not types.
  ConvolutionCase problem() const {
    auto [problem, type] = GetParam();
    const int64_t products = element_count(problem.x) * element_count(problem.weight) / problem.x.back();
    if (type == DataType::fp16 && products > 20'000'000) problem.x[0] = 1;
    return problem;
  }

  Value* input(const std::string& name, const Shape& shape) {
    return graph_.add_input(InputRole::input, name, {std::get<1>(GetParam()), to_symbolic(shape)});
  }

  // Compares all kernels of the node that makes the value; `terms` are summed for one element.
  std::vector<std::string> check(const Value* result, int64_t terms, const std::vector<bool>& freezable) {
    const Tolerance tolerance =
        tolerance_for(OperatorClass::contraction, result->data_type(), {.terms = terms, .magnitude = 1});
    return expect_every_kernel(*result->producer(), random_inputs(*result->producer(), -1, 1), {tolerance},
                               freezable);
  }

  Graph graph_;
};

Shape result_shape(const ConvolutionCase& problem) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, to_symbolic(problem.x)});
  Value* weight = graph.add_input(InputRole::input, "weight", {DataType::fp32, to_symbolic(problem.weight)});
  return ops::convolution(x, weight, problem.options)->type().static_shape();
}

TEST_P(Convolution, Forward) {
  const auto& [name, x, weight, options] = problem();
  const Value* y = ops::convolution(input("x", x), input("weight", weight), options);
  check(y, element_count(weight) / weight[0], {false, true});
}

TEST_P(Convolution, ForwardWithABiasOfItsOwn) {
  const auto& [name, x, weight, options] = problem();
  const Value* plain = ops::convolution(input("x", x), input("weight", weight), options);
  const Node* node = graph_.add_node(
      "convolution", {plain->producer()->input(0), plain->producer()->input(1), input("bias", {weight[0]})},
      plain->producer()->attributes());
  check(node->output(), element_count(weight) / weight[0] + 1, {false, true, true});
}

TEST_P(Convolution, DataGradient) {
  const auto& [name, x, weight, options] = problem();
  const Value* dx = ops::convolution_data_gradient(input("dy", result_shape(problem())),
                                                   input("weight", weight), to_symbolic(x), options);
  check(dx, element_count(weight) / weight.back(), {false, true});
}

TEST_P(Convolution, Transposed) {
  const auto& [name, x, weight, options] = problem();
  const Shape y = result_shape(problem());
  const auto padding = [&](const std::vector<int64_t>& values, size_t axis) {
    return values.empty() ? 0 : values[axis];
  };
  std::vector<int64_t> rest;  // of x beyond the last window
  for (size_t axis = 0; axis + 2 < x.size(); ++axis) {
    const int64_t dilation = options.dilations.empty() ? 1 : options.dilations[axis];
    const int64_t stride = options.strides.empty() ? 1 : options.strides[axis];
    const int64_t low = padding(options.padding_low, axis);
    const int64_t high = options.padding_high.empty() ? low : options.padding_high[axis];
    const int64_t covered = (y[axis + 1] - 1) * stride + dilation * (weight[axis + 1] - 1) + 1;
    rest.push_back(x[axis + 1] + low + high - covered);
  }
  const Value* result = ops::transposed_convolution(input("x", y), input("weight", weight), options, rest);
  ASSERT_EQ(result->type().static_shape(), x);
  check(result, element_count(weight) / weight.back(), {false, true});
}

TEST_P(Convolution, WeightGradient) {
  const auto& [name, x, weight, options] = problem();
  const Shape y = result_shape(problem());
  const Value* dw =
      ops::convolution_weight_gradient(input("x", x), input("dy", y), to_symbolic(weight), options);
  check(dw, element_count(y) / y.back(), {false, false});
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, Convolution,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(DataType::fp32, DataType::bf16,
                                                              DataType::fp16)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

// Which kernels the tuner can choose from for the two shapes that networks are made of.
TEST(ConvolutionCandidates, PointwiseIsOfferedAsAMatrixProduct) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2, 4, 4, 16}});
  Value* weight = graph.add_input(InputRole::input, "weight", {DataType::fp32, {8, 1, 1, 16}});
  const Node& node = *ops::convolution(x, weight)->producer();
  const Tolerance tolerance = tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 16});
  const std::vector<std::string> names =
      expect_every_kernel(node, random_inputs(node, -1, 1), {tolerance}, {false, true});
  EXPECT_EQ(names, (std::vector<std::string>{"onednn.convolution", "onednn.matmul_1x1",
                                             "onednn.convolution_blocked"}));
  EXPECT_TRUE(Device::cpu()->tunable(node));
}

TEST(PointwiseConvolution, LargeResultsGoPastTheCaches) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {1, 240, 241, 8}});
  Value* weight = graph.add_input(InputRole::input, "weight", {DataType::fp32, {80, 1, 1, 8}});
  const Node& node = *ops::convolution(x, weight)->producer();
  const Tolerance tolerance = tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 8});
  const std::vector<std::string> names =
      expect_every_kernel(node, random_inputs(node, -1, 1), {tolerance}, {false, false});
  EXPECT_EQ(names.front(), "loops.pointwise");
}

// The transformed filter is 4 times as large: a product of few squares had better be direct.
TEST(ConvolutionCandidates, WinogradIsForManySquares) {
  const auto refusal = [](int64_t images, bool frozen) {
    Graph graph;
    Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {images, 4, 4, 32}});
    Value* weight = graph.add_input(InputRole::input, "weight", {DataType::fp32, {32, 3, 3, 32}});
    const Node& node = *ops::convolution(x, weight, {.padding_low = {1, 1}})->producer();
    const KernelCandidate first = Device::cpu()->candidates(node).front();
    EXPECT_EQ(first.name, "loops.winograd");
    return first.refusal({node, {false, frozen}});
  };
  EXPECT_EQ(refusal(8, true), "");
  EXPECT_EQ(refusal(32, false), "");
  EXPECT_NE(refusal(7, true).find("7 squares"), std::string::npos);
  EXPECT_NE(refusal(31, false).find("31 squares"), std::string::npos);
}

TEST(ConvolutionCandidates, WeightGradientsThatAreFasterDirectGoToTheLoops) {
  const auto taken = [](const Shape& weight, int64_t stride) {
    Graph graph;
    Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2, 8, 8, weight[3]}});
    const int64_t edge = (8 - weight[1]) / stride + 1;
    Value* dy = graph.add_input(InputRole::input, "dy", {DataType::fp32, {2, edge, edge, weight[0]}});
    const Node& node =
        *ops::convolution_weight_gradient(x, dy, to_symbolic(weight), {.strides = {stride, stride}})
             ->producer();
    for (const KernelCandidate& candidate : Device::cpu()->candidates(node))
      if (candidate.refusal({node, {false, false}}).empty()) return candidate.name;
    return std::string();
  };
  EXPECT_EQ(taken({256, 1, 1, 64}, 1), "loops.direct_weight_gradient");
  EXPECT_EQ(taken({512, 1, 1, 256}, 2), "loops.direct_weight_gradient");
  EXPECT_EQ(taken({64, 1, 1, 64}, 1), "onednn.convolution_weight_gradient");
  EXPECT_EQ(taken({128, 3, 3, 128}, 2), "loops.direct_weight_gradient");
  EXPECT_EQ(taken({128, 2, 2, 128}, 1), "onednn.convolution_weight_gradient");
  EXPECT_EQ(taken({64, 3, 3, 5}, 2), "onednn.convolution_weight_gradient");
}

// Whoever is willing is right: in bf16 oneDNN 3.2 is not, and refused.
TEST(ConvolutionCandidates, StridesMayReachBeyondTheImage) {
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    Graph graph;
    Value* x = graph.add_input(InputRole::input, "x", {type, {2, 1, 2, 7}});
    Value* dy = graph.add_input(InputRole::input, "dy", {type, {2, 1, 1, 8}});
    const Node& node =
        *ops::convolution_weight_gradient(x, dy, {8, 3, 2, 7}, {.strides = {2, 3}, .padding_low = {1, 1}})
             ->producer();
    const std::vector<Tensor> inputs = random_inputs(node, -1, 1);
    const std::vector<Tensor> expected = run_reference(node, std::vector{&inputs[0], &inputs[1]});
    const KernelRequest request{.node = node, .frozen_inputs = {false, false}};
    for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
      if (!candidate.refusal(request).empty()) continue;
      const std::unique_ptr<Kernel> kernel = candidate.create(request);
      expect_close(run_kernel(*Device::cpu(), *kernel, request, inputs)[0], expected[0],
                   tolerance_for(OperatorClass::contraction, type, {.terms = 2}), candidate.name);
    }
  }
}

// What the library is at fault with goes to its blocked form, which is right.
TEST(ConvolutionCandidates, WeightGradientsThatOnednnGetsWrongAreRefusedByItsName) {
  const auto refusal = [](DataType type, int64_t channels, int64_t window, int64_t stride, int64_t dilation) {
    Graph graph;
    const int64_t reach = dilation * (window - 1) + 1;
    const int64_t extent = (32 - reach) / stride + 1;
    Value* x = graph.add_input(InputRole::input, "x", {type, {1, 32, 32, channels}});
    Value* dy = graph.add_input(InputRole::input, "dy", {type, {1, extent, extent, 16}});
    const Node& node =
        *ops::convolution_weight_gradient(x, dy, {16, window, window, channels},
                                          {.strides = {stride, stride}, .dilations = {dilation, dilation}})
             ->producer();
    std::string plain;
    for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
      const std::string reason = candidate.refusal({node, {false, false}});
      if (candidate.name == "onednn.convolution_weight_gradient") plain = reason;
      if (candidate.name == "onednn.convolution_weight_gradient_blocked") {
        EXPECT_EQ(reason, "");
      }
    }
    return plain;
  };
  EXPECT_EQ(
      refusal(DataType::fp32, 15, 1, 2, 1),
      "oneDNN 3.2 writes beyond its scratchpad for strides over windows of one element and fewer than 16 "
      "channels");
  EXPECT_EQ(refusal(DataType::fp32, 16, 1, 2, 1), "");
  EXPECT_EQ(refusal(DataType::fp32, 15, 3, 2, 1), "");
  EXPECT_EQ(refusal(DataType::fp32, 24, 3, 1, 2), "");
  EXPECT_EQ(refusal(DataType::bf16, 32, 3, 1, 2), "");
  EXPECT_EQ(refusal(DataType::bf16, 24, 3, 1, 1), "");
}

TEST(ConvolutionCandidates, RefusalsSayWhy) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp64, {2, 4, 4, 16}});
  Value* weight = graph.add_input(InputRole::input, "weight", {DataType::fp64, {8, 3, 3, 16}});
  const Node& node = *ops::convolution(x, weight)->producer();
  for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
    const std::string refusal = candidate.refusal({node, {false, false}});
    if (candidate.name == "reference") {
      EXPECT_EQ(refusal, "");
    } else {
      EXPECT_NE(refusal, "") << candidate.name;
    }
  }
}

// Every element of the window lies above or below the image: where the processor has AMX, that ends oneDNN's
// program in bf16.
class ConvolutionBesideTheImage : public ::testing::TestWithParam<std::string> {
 protected:
  // The type in place of T.
  static Case case_of(std::string text) {
    for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[", at))
      text.replace(at, 1, GetParam());
    return text_case(text);
  }
};

TEST_P(ConvolutionBesideTheImage, IsTheBiasAlone) {
  const Case own =
      case_of(R"(graph beside(input %x: T[8, 1, 11, 16], input %w: T[16, 2, 3, 16], input %b: T[16]) {
  %y = convolution(%x, %w, %b) {dilations = [3, 3], padding_high = [2, 2], padding_low = [2, 2], strides = [1, 1]}
  output y = %y
})");
  const Tensor y = run_on_cpu(own).outputs[0];
  for (int64_t i = 0; i < element_count(y.shape()); ++i) ASSERT_EQ(y.at(i), own.inputs[2].at(i % 16)) << i;
}

TEST_P(ConvolutionBesideTheImage, HasNoGradients) {
  const Case own = case_of(
      R"(graph beside(input %x: T[8, 1, 11, 16], input %w: T[16, 2, 3, 16], input %dy: T[8, 2, 9, 16]) {
  %dx = convolution_data_gradient(%dy, %w) {dilations = [3, 3], input_shape = [8, 1, 11, 16], padding_high = [2, 2], padding_low = [2, 2], strides = [1, 1]}
  %dw = convolution_weight_gradient(%x, %dy) {dilations = [3, 3], padding_high = [2, 2], padding_low = [2, 2], strides = [1, 1], weight_shape = [16, 2, 3, 16]}
  output dx = %dx
  output dw = %dw
})");
  for (const Tensor& gradient : run_on_cpu(own).outputs) {
    for (int64_t i = 0; i < element_count(gradient.shape()); ++i) ASSERT_EQ(gradient.at(i), 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ConvolutionBesideTheImage, ::testing::Values("fp32", "fp16", "bf16"));

}  // namespace
}  // namespace tessera::testing
