// Convolutions of our own loops, with what they end with.
#include <cmath>
#include <limits>
#include <string>

#include "tessera/ops/functions.h"

#include "passes/run_pass.h"
#include "support/contraction_chains.h"
#include "support/every_kernel.h"
#include "support/first_willing.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

struct LoopCase {
  std::string name;
  std::string kernel;  // that is taken
  Shape x;
  Shape weight;
  ops::ConvolutionOptions options = {};
};

std::vector<LoopCase> cases() {
  const std::string depthwise = "loops.depthwise";
  const std::string pointwise = "loops.pointwise";
  const std::string windows = "loops.windows";
  return {
      {"depthwise", depthwise, {2, 9, 19, 32}, {32, 3, 3, 1}, {.padding_low = {1, 1}, .groups = 32}},
      {"depthwise_strided",
       depthwise,
       {2, 13, 17, 48},
       {48, 3, 3, 1},
       {.strides = {2, 2}, .padding_low = {1, 1}, .groups = 48}},
      {"depthwise_wide_window",
       depthwise,
       {1, 14, 14, 16},
       {16, 5, 5, 1},
       {.padding_low = {2, 2}, .groups = 16}},
      {"depthwise_window_beyond_the_image",
       depthwise,
       {3, 2, 3, 24},
       {24, 5, 7, 1},
       {.padding_low = {4, 5}, .groups = 24}},
      {"depthwise_uneven_padding",
       depthwise,
       {1, 11, 12, 16},
       {16, 3, 4, 1},
       {.strides = {2, 3}, .padding_low = {0, 3}, .padding_high = {2, 1}, .groups = 16}},
      {"depthwise_dilated",
       depthwise,
       {1, 12, 21, 16},
       {16, 3, 3, 1},
       {.padding_low = {2, 3}, .dilations = {2, 3}, .groups = 16}},
      {"depthwise_odd_channels",
       depthwise,
       {2, 6, 7, 13},
       {13, 3, 3, 1},
       {.padding_low = {1, 1}, .groups = 13}},
      {"depthwise_one_axis", depthwise, {3, 40, 16}, {16, 4, 1}, {.padding_low = {2}, .groups = 16}},
      {"depthwise_three_axes",
       depthwise,
       {1, 5, 6, 7, 16},
       {16, 3, 2, 3, 1},
       {.strides = {1, 2, 1}, .padding_low = {1, 0, 1}, .groups = 16}},
      {"depthwise_past_the_caches",
       depthwise,
       {1, 257, 256, 64},
       {64, 1, 3, 1},
       {.padding_low = {0, 1}, .groups = 64}},
      {"pointwise", pointwise, {2, 17, 19, 24}, {48, 1, 1, 24}},
      {"pointwise_panels_cut", pointwise, {1, 25, 23, 40}, {112, 1, 1, 40}},
      {"pointwise_many_outputs", pointwise, {1, 23, 24, 8}, {592, 1, 1, 8}},
      {"windows", windows, {1, 25, 27, 5}, {32, 3, 3, 5}, {.padding_low = {1, 1}}},
      {"stem", windows, {2, 41, 43, 3}, {32, 3, 3, 3}, {.strides = {2, 2}, .padding_low = {1, 1}}},
      {"large_stem", windows, {1, 49, 51, 3}, {16, 7, 7, 3}, {.strides = {2, 2}, .padding_low = {3, 3}}},
      {"windows_of_one_element_apart", windows, {1, 51, 51, 9}, {16, 1, 1, 9}, {.strides = {2, 2}}},
      {"windows_dilated",
       windows,
       {1, 30, 31, 6},
       {16, 3, 2, 6},
       {.padding_low = {2, 3}, .dilations = {2, 3}}},
      {"windows_of_one_axis", windows, {1, 600, 7}, {16, 5, 7}, {.padding_low = {2}}},
      {"windows_of_three_axes", windows, {1, 9, 10, 11, 3}, {16, 3, 2, 3, 3}, {.padding_low = {1, 0, 1}}},
      {"windows_of_many_channels", windows, {1, 30, 30, 200}, {16, 2, 3, 200}},
      {"squares", "loops.winograd", {4, 13, 14, 16}, {24, 3, 3, 16}, {.padding_low = {1, 1}}},
  };
}

class LoopConvolution : public ::testing::TestWithParam<LoopCase> {
 protected:
  LoopConvolution() {
    const auto& [name, kernel, x, weight, options] = GetParam();
    x_ = graph_.add_input(InputRole::input, "x", {DataType::fp32, to_symbolic(x)});
    Value* w = graph_.add_input(InputRole::parameter, "w", {DataType::fp32, to_symbolic(weight)});
    y_ = ops::convolution(x_, w, options);
    terms_ = element_count(weight) / weight[0];
  }

  void add_bias() {
    y_ = ops::add(y_, graph_.add_input(InputRole::parameter, "b",
                                       {DataType::fp32, to_symbolic({GetParam().weight[0]})}));
  }
  void add_residual() { y_ = ops::add(y_, graph_.add_input(InputRole::input, "r", y_->type())); }

  const Node& fused() {
    graph_.add_output("y", y_);
    const PassContext context = brings({backend::contraction_pattern("convolution")});
    EXPECT_TRUE(run_pass(graph_, "fuse_patterns", context));
    EXPECT_EQ(graph_.nodes().size(), 1);
    return *graph_.nodes().front();
  }

  std::vector<bool> freezable(const Node& node) const {
    std::vector<bool> result;
    for (const Value* input : node.inputs()) result.push_back(input->role() == InputRole::parameter);
    return result;
  }

  Tolerance tolerance() const {
    Tolerance result = chain_tolerance(
        {.name = {}, .kind = {}, .inputs = {}, .shape = {}, .main = {}, .terms = terms_ + 2}, DataType::fp32);
    // Winograd's transforms (tiles of 6 x 6) amplify what fp32 rounds: over 8 to 64 channels errors are 4 to
    // 5 times those of direct sums.
    if (GetParam().kernel == "loops.winograd") result.absolute *= 5;
    return result;
  }

  void expect_right(const Node& node) {
    const std::vector<std::string> names =
        expect_every_kernel(node, random_inputs(node, -1, 1), {tolerance()}, freezable(node));
    EXPECT_EQ(names.front(), GetParam().kernel);
  }

  Graph graph_;
  Value* x_ = nullptr;
  Value* y_ = nullptr;
  int64_t terms_ = 0;
};

TEST_P(LoopConvolution, EndsWithBiasAndRelu6) {
  add_bias();
  y_ = ops::relu6(y_);
  expect_right(fused());
}

TEST_P(LoopConvolution, EndsWithResidualAndClip) {
  add_bias();
  add_residual();
  y_ = ops::clip(y_, -0.25, 0.5);
  expect_right(fused());
}

TEST_P(LoopConvolution, EndsWithLimitsAlone) {
  y_ = ops::clip(y_, -0.5, 0.25);
  expect_right(fused());
}

// Of one output channel, as its weight has one.
TEST_P(LoopConvolution, KeepsNaN) {
  y_ = ops::relu6(y_);
  const Node& node = fused();
  std::vector<Tensor> inputs = random_inputs(node, -1, 1);
  inputs[1].set(0, std::numeric_limits<double>::quiet_NaN());
  for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
    if (candidate.name != GetParam().kernel) continue;
    for (const bool frozen : {false, true}) {
      const KernelRequest request{
          .node = node, .frozen_inputs = frozen ? freezable(node) : std::vector<bool>(inputs.size(), false)};
      ASSERT_EQ(candidate.refusal(request), "");
      const Tensor y = run_kernel(*Device::cpu(), *candidate.create(request), request, inputs)[0];
      const int64_t channels = GetParam().weight[0];
      int64_t found = 0;
      for (int64_t i = 0; i < y.size(); i += channels) found += std::isnan(y.at(i)) ? 1 : 0;
      EXPECT_GT(found, 0);
      for (int64_t i = 1; i < y.size(); ++i) ASSERT_TRUE(i % channels == 0 || !std::isnan(y.at(i))) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, LoopConvolution, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

// Few pixels and a large weight: threads share the weight, which is packed once where it is frozen.
TEST(LoopConvolutions, FewPixelsAreForFrozenWeights) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {1, 5, 5, 32}});
  Value* w = graph.add_input(InputRole::parameter, "w", {DataType::fp32, {208, 1, 1, 32}});
  graph.add_output("y", ops::relu6(ops::convolution(x, w)));
  ASSERT_TRUE(run_pass(graph, "fuse_patterns", brings({backend::contraction_pattern("convolution")})));
  const Node& node = *graph.nodes().front();
  for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
    if (candidate.name != "loops.pointwise") continue;
    EXPECT_EQ(candidate.refusal({node, {false, false}}), "25 rows");
    EXPECT_EQ(candidate.refusal({node, {false, true}}), "");
  }
  const Tolerance tolerance = tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 32});
  expect_every_kernel(node, random_inputs(node, -1, 1), {tolerance}, {false, true});
}

// Also where oneDNN takes what follows.
TEST(LoopConvolutions, OfASinglePixelAreTheirs) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {3, 1, 1, 20}});
  Value* w = graph.add_input(InputRole::parameter, "w", {DataType::fp32, {48, 1, 1, 20}});
  graph.add_output("y", ops::sigmoid(ops::convolution(x, w)));
  ASSERT_TRUE(run_pass(graph, "fuse_patterns", brings({backend::contraction_pattern("convolution")})));
  const Node& node = *graph.nodes().front();
  EXPECT_EQ(first_willing(node, {false, true}), "loops.pointwise");
  const Tolerance tolerance = tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 22});
  expect_every_kernel(node, random_inputs(node, -1, 1), {tolerance}, {false, true});
}

// Where nobody else does: in 16 bits the limits stay a pass of their own.
TEST(LoopConvolutions, TheDeviceFusesLimitsOfFp32) {
  const auto fuses = [](const std::string& type) {
    std::string text = with_window(
        "graph g(input %x: T[1, 6, 6, 16], parameter %w: T[16, 1, 1, 16]) {\n"
        "  %v = convolution(%x, %w) {$WINDOW}\n  %y = relu6(%v)\n  output y = %y\n}");
    for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[", at))
      text.replace(at, 1, type);
    const std::unique_ptr<Graph> graph = parse_graph(text);
    PassContext context;
    context.target = Device::cpu()->pass_target(context.options);
    return run_pass(*graph, "fuse_patterns", context);
  };
  EXPECT_TRUE(fuses("fp32"));
  EXPECT_FALSE(fuses("bf16"));
}

}  // namespace
}  // namespace tessera::testing
