// A depthwise convolution and the pointwise ones around it as one kernel, and where the device does not join
// them.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>

#include <omp.h>

#include "tessera/ops/functions.h"

#include "device/cpu/convolution/depthwise_block_pattern.h"
#include "device/cpu/panels/panel_product.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/first_willing.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

enum class Ending { nothing, relu6, silu, hard_swish };

struct BlockCase {
  std::string name;
  Shape x;
  int64_t channels = 0;
  Shape window;
  ops::ConvolutionOptions options = {};  // of the depthwise convolution
  Ending ending = Ending::relu6;
};

struct Links {
  bool expand = true;
  int64_t results = 0;  // channels of a product after the depthwise convolution; 0: there is none
};

// Windows with loops of their own and others; images that one tile holds, and that are cut into strips;
// groups of channels that are no whole panels.
std::vector<BlockCase> cases() {
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
      {"strips", {1, 90, 180, 8}, 48, {3, 3}, {.padding_low = {1, 1}}},
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

// However few tiles they have.
FusionPattern whole_blocks() {
  return cpu::depthwise_block_pattern([](const cpu::ConvolutionProblem&, bool) { return true; });
}

class Block {
 public:
  explicit Block(const BlockCase& sizes, Links links = {}) : sizes_(sizes), links_(links) {
    Shape x = sizes.x;
    if (!links.expand) x.back() = sizes.channels;
    y_ = input("x", {DataType::fp32, to_symbolic(x)});
    if (links.expand) {
      y_ = ops::convolution(y_, parameter("e", {sizes.channels, 1, 1, x.back()}));
      y_ = ops::add(y_, parameter("eb", {sizes.channels}));
    }
  }

  Graph& graph() { return *graph_; }
  Value* result() { return y_; }
  void add_residual(const char* name) { y_ = ops::add(y_, input(name, y_->type())); }
  void add_bias(const char* name) { y_ = ops::add(y_, parameter(name, {y_->type().static_shape().back()})); }
  void end() { y_ = end_with(sizes_.ending, y_); }

  // With bias and activation where another follows.
  void go_on() {
    if (links_.expand) end();
    ops::ConvolutionOptions options = sizes_.options;
    options.groups = sizes_.channels;
    y_ = ops::convolution(y_, parameter("d", {sizes_.channels, sizes_.window[0], sizes_.window[1], 1}),
                          options);
  }
  void project() {
    if (links_.results == 0) return;
    add_bias("db");
    end();
    y_ = ops::convolution(y_, parameter("p", {links_.results, 1, 1, sizes_.channels}));
  }

  const Node& fused() {
    graph_->add_output("y", y_);
    EXPECT_TRUE(run_pass(*graph_, "fuse_patterns", brings({whole_blocks()})));
    EXPECT_EQ(graph_->nodes().size(), 1);
    return *graph_->nodes().front();
  }

 private:
  Value* input(const char* name, const TensorType& type) {
    return graph_->add_input(InputRole::input, name, type);
  }
  Value* parameter(const char* name, const Shape& shape) {
    return graph_->add_input(InputRole::parameter, name, {DataType::fp32, to_symbolic(shape)});
  }

  BlockCase sizes_;
  Links links_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  Value* y_ = nullptr;
};

Block whole_block(const BlockCase& sizes, Links links) {
  Block block(sizes, links);
  block.go_on();
  block.project();
  return block;
}

std::vector<bool> freezable(const Node& node) {
  std::vector<bool> result;
  for (const Value* input : node.inputs()) result.push_back(input->role() == InputRole::parameter);
  return result;
}

int64_t vectors(int64_t count) {
  return count * cpu::vector_width();
}

// Products of fewer and of more columns than a panel has, and of no whole panels.
class DepthwiseBlock : public ::testing::TestWithParam<std::tuple<BlockCase, Links>> {
 protected:
  const BlockCase& sizes() const { return std::get<0>(GetParam()); }
  const Links& links() const { return std::get<1>(GetParam()); }

  void expect_right(Block& block) {
    const Node& node = block.fused();
    // What one sums has the errors of those before it: as many as all terms of all of them.
    int64_t terms = sizes().window[0] * sizes().window[1] + 4;
    if (links().expand) terms *= sizes().x.back();
    if (links().results > 0) terms *= sizes().channels;
    expect_every_kernel(node, random_inputs(node, -1, 1),
                        {tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = terms})},
                        freezable(node));
    EXPECT_EQ(first_willing(node, freezable(node)), "loops.depthwise_block");
  }
};

TEST_P(DepthwiseBlock, Plain) {
  Block block = whole_block(sizes(), links());
  expect_right(block);
}

TEST_P(DepthwiseBlock, EndsWithBiasAndActivation) {
  Block block = whole_block(sizes(), links());
  block.add_bias("yb");
  block.end();
  expect_right(block);
}

TEST_P(DepthwiseBlock, EndsWithResidual) {
  Block block = whole_block(sizes(), links());
  block.add_bias("yb");
  block.add_residual("r");
  expect_right(block);
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, DepthwiseBlock,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(Links{.expand = true},
                                                              Links{.expand = true, .results = vectors(1)},
                                                              Links{.expand = true, .results = vectors(5)},
                                                              Links{.expand = false, .results = vectors(3)})),
                         [](const auto& test) {
                           const Links& links = std::get<1>(test.param);
                           return std::get<0>(test.param).name + (links.expand ? "" : "_read_as_it_is") +
                                  (links.results == 0 ? "" : "_to_" + std::to_string(links.results));
                         });

// A channel of the first alone, and so of the second.
TEST(DepthwiseBlocks, KeepNaN) {
  Block block = whole_block(cases().front(), {});
  block.add_bias("yb");
  block.end();
  const Node& node = block.fused();
  std::vector<Tensor> inputs = random_inputs(node, -1, 1);
  inputs[1].set(0, std::numeric_limits<double>::quiet_NaN());
  const KernelCandidate candidate = Device::cpu()->candidates(node).front();
  const KernelRequest request{.node = node, .frozen_inputs = freezable(node)};
  ASSERT_EQ(candidate.refusal(request), "");
  const Tensor y = run_kernel(*Device::cpu(), *candidate.create(request), request, inputs)[0];
  int64_t found = 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    found += std::isnan(y.at(i)) ? 1 : 0;
    ASSERT_TRUE(i % cases().front().channels == 0 || !std::isnan(y.at(i))) << i;
  }
  EXPECT_GT(found, 0);
}

bool joins(Block& block) {
  block.graph().add_output("y", block.result());
  return run_pass(block.graph(), "fuse_patterns", brings({whole_blocks()}));
}

// Of the links that a block could have.
bool ends_with_convolution(Block& block) {
  return block.graph().nodes().back()->operator_name() == "convolution";
}

// Of so many images that all threads have some.
BlockCase of_many_images() {
  BlockCase sizes = cases().front();
  sizes.x.front() = omp_get_max_threads();
  return sizes;
}

TEST(DepthwiseBlocks, AreOfFrozenWeights) {
  for (const bool frozen : {true, false}) {
    Block block = whole_block(of_many_images(), {.results = 16});
    block.graph().add_output("y", block.result());
    PassContext context;
    context.options.frozen = frozen;
    context.target = Device::cpu()->pass_target(context.options);
    run_pass(block.graph(), "fuse_patterns", context);
    EXPECT_EQ(block.graph().nodes().size() == 1, frozen);
  }
}

// An image that the cache holds whole would be cut for them, and its lines made twice.
TEST(DepthwiseBlocks, LeaveTheProductAfterThemWhereTilesAreFew) {
  BlockCase sizes = of_many_images();
  for (const int64_t less : {0, 1}) {
    sizes.x.front() -= less;
    if (sizes.x.front() == 0) continue;  // of one thread
    Block block = whole_block(sizes, {.results = 16});
    block.graph().add_output("y", block.result());
    EXPECT_TRUE(run_pass(block.graph(), "fuse_patterns", brings({cpu::depthwise_block_pattern()})));
    EXPECT_EQ(ends_with_convolution(block), less == 1);
  }
}

TEST(DepthwiseBlocks, AreMoreThanADepthwiseConvolution) {
  Block block = whole_block(cases().front(), {.expand = false});
  EXPECT_FALSE(joins(block));
}

TEST(DepthwiseBlocks, EndWhereAnotherReads) {
  Block first(cases().front());
  first.graph().add_output("also", first.result());
  first.go_on();
  EXPECT_FALSE(joins(first));
  Block second(cases().front(), {.results = 16});
  second.go_on();
  second.graph().add_output("also", second.result());
  second.project();
  EXPECT_TRUE(joins(second));
  EXPECT_TRUE(ends_with_convolution(second));
}

TEST(DepthwiseBlocks, EndWhereAResidualIsAdded) {
  Block first(cases().front());
  first.add_residual("r");
  first.go_on();
  EXPECT_FALSE(joins(first));
  Block second(cases().front(), {.results = 16});
  second.go_on();
  second.add_residual("r");
  second.project();
  EXPECT_TRUE(joins(second));
  EXPECT_TRUE(ends_with_convolution(second));
}

TEST(DepthwiseBlocks, HaveChannelsInWholeVectors) {
  BlockCase sizes = cases().front();
  sizes.channels = 20 + 1;
  Block block = whole_block(sizes, {});
  EXPECT_FALSE(joins(block));
  Block narrow = whole_block(cases().front(), {.expand = false, .results = 20 + 1});
  EXPECT_FALSE(joins(narrow));
}

}  // namespace
}  // namespace tessera::testing
