#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

constexpr PassOptions kOn{.space_to_depth = true};
constexpr const char* kPass = "space_to_depth_convolution";

TEST(SpaceToDepthConvolution, RewritesTheConvolutionAndItsWeightGradient) {
  expect_pass(kPass, R"(
    graph g(input %x: fp16[2, 8, 8, 3], parameter %w: fp16[5, 7, 7, 3], input %dy: fp16[2, 4, 4, 5]) {
      %y = convolution(%x, %w) {strides = [2, 2], padding_low = [3, 3], padding_high = [3, 3], dilations = [1, 1]}
      %dw = convolution_weight_gradient(%x, %dy) {weight_shape = [5, 7, 7, 3], strides = [2, 2], padding_low = [3, 3], padding_high = [3, 3], dilations = [1, 1]}
      output y = %y
      output dw = %dw
    })",
              R"(
    graph g(input %x: fp16[2, 8, 8, 3], parameter %w: fp16[5, 7, 7, 3], input %dy: fp16[2, 4, 4, 5]) {
      %y.blocks/pad = pad(%x) {low = [0, 3, 3, 0], high = [0, 3, 3, 1], interior = [0, 0, 0, 0]}
      %y.blocks/reshape = reshape(%y.blocks/pad) {shape = [2, 7, 2, 7, 2, 4]}
      %y.blocks/transpose = transpose(%y.blocks/reshape) {permutation = [0, 1, 3, 2, 4, 5]}
      %y.blocks/reshape_1 = reshape(%y.blocks/transpose) {shape = [2, 7, 7, 16]}
      %y.blocks/pad_1 = pad(%w) {low = [0, 0, 0, 0], high = [0, 1, 1, 1], interior = [0, 0, 0, 0]}
      %y.blocks/reshape_2 = reshape(%y.blocks/pad_1) {shape = [5, 4, 2, 4, 2, 4]}
      %y.blocks/transpose_1 = transpose(%y.blocks/reshape_2) {permutation = [0, 1, 3, 2, 4, 5]}
      %y.blocks/reshape_3 = reshape(%y.blocks/transpose_1) {shape = [5, 4, 4, 16]}
      %y_1 = convolution(%y.blocks/reshape_1, %y.blocks/reshape_3) {strides = [1, 1], padding_low = [0, 0], padding_high = [0, 0], dilations = [1, 1]}
      %dw.blocks/pad = pad(%x) {low = [0, 3, 3, 0], high = [0, 3, 3, 1], interior = [0, 0, 0, 0]}
      %dw.blocks/reshape = reshape(%dw.blocks/pad) {shape = [2, 7, 2, 7, 2, 4]}
      %dw.blocks/transpose = transpose(%dw.blocks/reshape) {permutation = [0, 1, 3, 2, 4, 5]}
      %dw.blocks/reshape_1 = reshape(%dw.blocks/transpose) {shape = [2, 7, 7, 16]}
      %dw_1 = convolution_weight_gradient(%dw.blocks/reshape_1, %dy) {weight_shape = [5, 4, 4, 16], strides = [1, 1], padding_low = [0, 0], padding_high = [0, 0], dilations = [1, 1]}
      %dw.blocks/reshape_2 = reshape(%dw_1) {shape = [5, 4, 4, 2, 2, 4]}
      %dw.blocks/transpose_1 = transpose(%dw.blocks/reshape_2) {permutation = [0, 1, 3, 2, 4, 5]}
      %dw.blocks/reshape_3 = reshape(%dw.blocks/transpose_1) {shape = [5, 8, 8, 4]}
      %dw.blocks/slice = slice(%dw.blocks/reshape_3) {starts = [0, 0, 0, 0], limits = [5, 7, 7, 3], strides = [1, 1, 1, 1]}
      output y = %y_1
      output dw = %dw.blocks/slice
    })",
              kOn, {1e-3, 1e-3});
}

// A convolution and its weight gradient.
struct Stem {
  Shape x;
  Shape weight;
  std::vector<int64_t> strides;
  std::vector<int64_t> low;
  std::vector<int64_t> high;
};

std::string text_of(const Stem& stem) {
  const auto extent = [&](size_t axis) {
    const int64_t room = stem.x[axis + 1] + stem.low[axis] + stem.high[axis] - stem.weight[axis + 1];
    return room / stem.strides[axis] + 1;
  };
  const std::string window =
      fmt::format("strides = [{}], padding_low = [{}], padding_high = [{}], dilations = [1, 1]",
                  fmt::join(stem.strides, ", "), fmt::join(stem.low, ", "), fmt::join(stem.high, ", "));
  const std::string weight = fmt::format("[{}]", fmt::join(stem.weight, ", "));
  return fmt::format(
      "graph g(input %x: bf16[{}], parameter %w: bf16{}, parameter %b: bf16[{}], input %dy: bf16[{}, {}, {}, "
      "{}]) {{\n"
      "  %y = convolution(%x, %w, %b) {{{}}}\n"
      "  %dw = convolution_weight_gradient(%x, %dy) {{weight_shape = {}, {}}}\n"
      "  output y = %y\n  output dw = %dw\n}}\n",
      fmt::join(stem.x, ", "), weight, stem.weight[0], stem.x[0], extent(0), extent(1), stem.weight[0],
      window, weight, window);
}

class SpaceToDepthShapes : public ::testing::TestWithParam<Stem> {};

TEST_P(SpaceToDepthShapes, GiveTheSameSums) {
  const std::string text = text_of(GetParam());
  const auto before = parse_graph(text);
  const auto after = parse_graph(text);
  EXPECT_TRUE(run_pass(*after, kPass, kOn));
  verify(*after);
  for (const auto& node : after->nodes()) {
    if (!node->operator_name().starts_with("convolution")) continue;
    EXPECT_EQ(node->attributes().integers("strides"), (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(node->input(0)->shape()[3].value() % 8, 0);
  }
  // The reference sums in fp64, in another order, and rounds once.
  expect_same_results(*before, *after, {1e-2, 1e-2});
}

INSTANTIATE_TEST_SUITE_P(Stems, SpaceToDepthShapes,
                         ::testing::Values(
                             // Of ResNet and of AlexNet, whose last pixels no window reaches.
                             Stem{{2, 16, 16, 3}, {4, 7, 7, 3}, {2, 2}, {3, 3}, {3, 3}},
                             Stem{{1, 32, 32, 3}, {4, 11, 11, 3}, {4, 4}, {2, 2}, {2, 2}},
                             Stem{{1, 15, 18, 3}, {3, 3, 3, 3}, {2, 2}, {1, 1}, {1, 1}},
                             Stem{{2, 17, 13, 3}, {3, 3, 7, 3}, {2, 2}, {0, 1}, {2, 4}},
                             Stem{{1, 13, 15, 1}, {2, 5, 5, 1}, {2, 2}, {2, 2}, {2, 2}},
                             Stem{{1, 12, 19, 4}, {2, 7, 7, 4}, {2, 4}, {3, 0}, {3, 1}},
                             Stem{{1, 16, 16, 3}, {8, 8, 8, 3}, {8, 8}, {0, 0}, {0, 0}},
                             Stem{{1, 9, 11, 2}, {2, 9, 11, 2}, {2, 1}, {0, 0}, {0, 0}}));

void expect_untouched(const std::string& x, const std::string& weight, const std::string& window,
                      const PassOptions& options = kOn) {
  expect_no_change(kPass,
                   "graph g(input %x: " + x + ", parameter %w: " + weight + R"() {
      %y = convolution(%x, %w) {)" +
                       window + R"(, padding_low = [3, 3], padding_high = [3, 3]}
      output y = %y
    })",
                   options);
}

constexpr const char* kStride = "strides = [2, 2], dilations = [1, 1]";

TEST(SpaceToDepthConvolution, IsOffUnlessTheDeviceAsksForIt) {
  expect_untouched("fp16[1, 8, 8, 3]", "fp16[4, 7, 7, 3]", kStride, {});
}

TEST(SpaceToDepthConvolution, LeavesFullPrecisionAlone) {
  expect_untouched("fp32[1, 8, 8, 3]", "fp32[4, 7, 7, 3]", kStride);
}

TEST(SpaceToDepthConvolution, LeavesManyChannelsAlone) {
  expect_untouched("fp16[1, 8, 8, 6]", "fp16[4, 7, 7, 6]", kStride);
}

TEST(SpaceToDepthConvolution, LeavesStrideOneAlone) {
  expect_untouched("fp16[1, 8, 8, 3]", "fp16[4, 7, 7, 3]", "strides = [1, 1], dilations = [1, 1]");
}

TEST(SpaceToDepthConvolution, LeavesDilationAlone) {
  expect_untouched("fp16[1, 8, 8, 3]", "fp16[4, 5, 5, 3]", "strides = [2, 2], dilations = [2, 1]");
}

TEST(SpaceToDepthConvolution, LeavesGroupsAlone) {
  expect_untouched("fp16[1, 8, 8, 4]", "fp16[4, 7, 7, 2]",
                   "strides = [2, 2], dilations = [1, 1], groups = 2");
}

// Blocks of nine pixels would take eight channels each to make a multiple of eight.
TEST(SpaceToDepthConvolution, LeavesAloneWhatWouldTakeMoreProducts) {
  expect_untouched("fp16[1, 8, 8, 3]", "fp16[4, 7, 7, 3]", "strides = [3, 3], dilations = [1, 1]");
}

TEST(SpaceToDepthConvolution, LeavesSymbolicImagesAlone) {
  expect_untouched("fp16[1, height, 8, 3]", "fp16[4, 7, 7, 3]", kStride);
}

TEST(SpaceToDepthConvolution, LeavesImagesThatNeedAGradientAlone) {
  expect_no_change(kPass, R"(
    graph g(input %x: fp16[1, 8, 8, 3], parameter %w: fp16[4, 7, 7, 3], input %dy: fp16[1, 4, 4, 4]) {
      %y = convolution(%x, %w) {strides = [2, 2], padding_low = [3, 3], padding_high = [3, 3], dilations = [1, 1]}
      %dw = convolution_weight_gradient(%x, %dy) {weight_shape = [4, 7, 7, 3], strides = [2, 2], padding_low = [3, 3], padding_high = [3, 3], dilations = [1, 1]}
      %dx = convolution_data_gradient(%dy, %w) {input_shape = [1, 8, 8, 3], strides = [2, 2], padding_low = [3, 3], padding_high = [3, 3], dilations = [1, 1]}
      output y = %y
      output dw = %dw
      output dx = %dx
    })",
                   kOn);
}

}  // namespace
}  // namespace tessera::testing
