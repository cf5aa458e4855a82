// A pointwise convolution and the depthwise one that reads it as one kernel, and where the device does not
// join them.
#include "device/cpu/convolution/expanded_depthwise.h"

#include <cmath>
#include <limits>
#include <string>

#include "tessera/ops/functions.h"

#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/first_willing.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

enum class Ending { nothing, relu6, silu, hard_swish };

struct PairCase {
  std::string name;
  Shape x;
  int64_t channels = 0;
  Shape window;
  ops::ConvolutionOptions options = {};  // of the depthwise convolution
  Ending ending = Ending::relu6;
};

// Windows with loops of their own and others; images that one tile holds, and that are cut into strips;
// groups of channels that are no whole panels.
std::vector<PairCase> cases() {
  return {
      {"squares_of_3", {2, 14, 14, 16}, 96, {3, 3}, {.padding_low = {1, 1}}},
      {"strided_3", {1, 15, 17, 8}, 64, {3, 3}, {.strides = {2, 2}, .padding_low = {1, 1}}},
      {"squares_of_5", {1, 7, 7, 24}, 240, {5, 5}, {.padding_low = {2, 2}}, Ending::silu},
      {"strided_5", {2, 14, 13, 16}, 48, {5, 5}, {.strides = {2, 2}, .padding_low = {2, 2}}, Ending::silu},
      {"uneven_padding",
       {1, 12, 11, 8},
       32,
       {3, 3},
       {.strides = {2, 2}, .padding_low = {0, 0}, .padding_high = {1, 1}},
       Ending::hard_swish},
      {"strips", {1, 90, 180, 8}, 40, {3, 3}, {.padding_low = {1, 1}}},
      {"strided_strips", {1, 91, 181, 4}, 32, {3, 3}, {.strides = {2, 2}, .padding_low = {1, 1}}},
      {"wide_window", {1, 20, 21, 8}, 16, {7, 4}, {.padding_low = {3, 2}}, Ending::nothing},
      {"dilated", {1, 20, 23, 8}, 16, {3, 3}, {.padding_low = {2, 3}, .dilations = {2, 3}}},
      {"window_beyond_the_image", {3, 2, 3, 8}, 16, {5, 5}, {.padding_low = {4, 5}}, Ending::nothing},
      {"one_line_read_by_none", {1, 9, 9, 8}, 16, {1, 3}, {.strides = {3, 1}, .padding_low = {0, 1}}},
  };
}

Value* end_with(Ending ending, Value* y) {
  switch (ending) {
    case Ending::relu6:
      return ops::relu6(y);
    case Ending::silu:
      return ops::silu(y);
    case Ending::hard_swish:
      return ops::hard_swish(y);
    case Ending::nothing:
      break;
  }
  return y;
}

class Pair {
 public:
  explicit Pair(const PairCase& sizes, bool with_residual = false) : sizes_(sizes) {
    x_ = graph_.add_input(InputRole::input, "x", {DataType::fp32, to_symbolic(sizes.x)});
    expanded_ = ops::convolution(x_, parameter("e", {sizes.channels, 1, 1, sizes.x.back()}));
    expanded_ = ops::add(expanded_, parameter("eb", {sizes.channels}));
    if (with_residual)
      expanded_ = ops::add(expanded_, graph_.add_input(InputRole::input, "er", expanded_->type()));
    expanded_ = end_with(sizes.ending, expanded_);
    ops::ConvolutionOptions options = sizes.options;
    options.groups = sizes.channels;
    y_ = ops::convolution(expanded_, parameter("d", {sizes.channels, sizes.window[0], sizes.window[1], 1}),
                          options);
  }

  Graph& graph() { return graph_; }
  Value* expanded() { return expanded_; }
  void add_bias() { y_ = ops::add(y_, parameter("db", {sizes_.channels})); }
  void add_residual() { y_ = ops::add(y_, graph_.add_input(InputRole::input, "r", y_->type())); }
  void end() { y_ = end_with(sizes_.ending, y_); }

  const Node& fused() {
    graph_.add_output("y", y_);
    EXPECT_TRUE(run_pass(graph_, "fuse_patterns", brings({cpu::expanded_depthwise_pattern()})));
    EXPECT_EQ(graph_.nodes().size(), 1);
    return *graph_.nodes().front();
  }

 private:
  Value* parameter(const char* name, const Shape& shape) {
    return graph_.add_input(InputRole::parameter, name, {DataType::fp32, to_symbolic(shape)});
  }

  PairCase sizes_;
  Graph graph_;
  Value* x_ = nullptr;
  Value* expanded_ = nullptr;
  Value* y_ = nullptr;
};

std::vector<bool> freezable(const Node& node) {
  std::vector<bool> result;
  for (const Value* input : node.inputs()) result.push_back(input->role() == InputRole::parameter);
  return result;
}

class ExpandedDepthwise : public ::testing::TestWithParam<PairCase> {
 protected:
  void expect_right() {
    const Node& node = pair_.fused();
    // What the second sums has the first one's errors: those of all terms of both.
    const int64_t terms = GetParam().x.back() * GetParam().window[0] * GetParam().window[1] + 4;
    expect_every_kernel(node, random_inputs(node, -1, 1),
                        {tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = terms})},
                        freezable(node));
    EXPECT_EQ(first_willing(node, freezable(node)), "loops.expanded_depthwise");
  }

  Pair pair_{GetParam()};
};

TEST_P(ExpandedDepthwise, Plain) {
  expect_right();
}

TEST_P(ExpandedDepthwise, EndsWithBiasAndActivation) {
  pair_.add_bias();
  pair_.end();
  expect_right();
}

TEST_P(ExpandedDepthwise, EndsWithResidual) {
  pair_.add_bias();
  pair_.add_residual();
  expect_right();
}

// A channel of the first alone, and so of the second.
TEST_P(ExpandedDepthwise, KeepsNaN) {
  pair_.add_bias();
  pair_.end();
  const Node& node = pair_.fused();
  std::vector<Tensor> inputs = random_inputs(node, -1, 1);
  inputs[1].set(0, std::numeric_limits<double>::quiet_NaN());
  const KernelCandidate candidate = Device::cpu()->candidates(node).front();
  const KernelRequest request{.node = node, .frozen_inputs = freezable(node)};
  ASSERT_EQ(candidate.refusal(request), "");
  const Tensor y = run_kernel(*Device::cpu(), *candidate.create(request), request, inputs)[0];
  int64_t found = 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    found += std::isnan(y.at(i)) ? 1 : 0;
    ASSERT_TRUE(i % GetParam().channels == 0 || !std::isnan(y.at(i))) << i;
  }
  EXPECT_GT(found, 0);
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, ExpandedDepthwise, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

bool joins(Pair& pair, bool frozen, Value* also_read = nullptr) {
  pair.add_bias();
  if (also_read != nullptr) pair.graph().add_output("also", also_read);
  PassContext context;
  context.options.frozen = frozen;
  context.target = Device::cpu()->pass_target(context.options);
  pair.graph().add_output("y", pair.graph().nodes().back()->output());
  run_pass(pair.graph(), "fuse_patterns", context);
  return pair.graph().nodes().size() == 1;
}

TEST(ExpandedDepthwisePairs, OfFrozenWeights) {
  const PairCase sizes = cases().front();
  Pair frozen(sizes);
  EXPECT_TRUE(joins(frozen, true));
  Pair trained(sizes);
  EXPECT_FALSE(joins(trained, false));
}

TEST(ExpandedDepthwisePairs, NotWhereTheFirstIsReadElsewhere) {
  Pair pair(cases().front());
  EXPECT_FALSE(joins(pair, true, pair.expanded()));
}

TEST(ExpandedDepthwisePairs, NotWhereAResidualIsAddedBetween) {
  Pair pair(cases().front(), /*with_residual=*/true);
  EXPECT_FALSE(joins(pair, true));
}

TEST(ExpandedDepthwisePairs, NotOfChannelsThatAreNoWholeVectors) {
  PairCase sizes = cases().front();
  sizes.channels = 20 + 1;
  Pair pair(sizes);
  EXPECT_FALSE(joins(pair, true));
}

}  // namespace
}  // namespace tessera::testing
