#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

TEST(FuseConvolution, TakesBiasResidualAndActivation) {
  expect_pass("fuse_convolution", R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[3, 1, 1, 2], parameter %b: fp32[3],
            input %residual: fp32[1, 4, 4, 3]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %biased = add(%c, %b)
      %sum = add(%residual, %biased)
      %y = relu(%sum)
      output y = %y
    })",
              R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[3, 1, 1, 2], parameter %b: fp32[3],
            input %residual: fp32[1, 4, 4, 3]) {
      %y = fused(%x, %w, %b, %residual) {kind = "convolution"} body graph convolution(
        input %x: fp32[1, 4, 4, 2], input %w: fp32[3, 1, 1, 2], input %b: fp32[3],
        input %residual: fp32[1, 4, 4, 3]) {
        %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
        %biased = add(%c, %b)
        %sum = add(%residual, %biased)
        %y = relu(%sum)
        output y0 = %y
      }
      output y = %y
    })");
}

TEST(FuseConvolution, StopsWhereAnIntermediateIsReadTwice) {
  expect_pass("fuse_convolution", R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[3, 1, 1, 2], parameter %b: fp32[3]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %biased = add(%c, %b)
      %y = relu(%biased)
      output y = %y
      output biased = %biased
    })",
              R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[3, 1, 1, 2], parameter %b: fp32[3]) {
      %biased = fused(%x, %w, %b) {kind = "convolution"} body graph convolution(
        input %x: fp32[1, 4, 4, 2], input %w: fp32[3, 1, 1, 2], input %b: fp32[3]) {
        %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
        %biased = add(%c, %b)
        output y0 = %biased
      }
      %y = relu(%biased)
      output y = %y
      output biased = %biased
    })");
}

// The residual is made after the convolution: the fused node must come behind both.
TEST(FuseConvolution, MovesBehindAResidualMadeLater) {
  const std::string text = R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[2, 1, 1, 2]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %later = exp(%x)
      %y = add(%c, %later)
      output y = %y
    })";
  const auto before = parse_graph(text);
  const auto after = parse_graph(text);
  EXPECT_TRUE(run_pass(*after, "fuse_convolution"));
  verify(*after);
  EXPECT_EQ(after->nodes().size(), 2);
  expect_same_results(*before, *after, {1e-6, 1e-6});
}

TEST(FuseConvolution, LeavesAloneWhatIsReadTwice) {
  expect_no_change("fuse_convolution", R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[3, 1, 1, 2], parameter %b: fp32[3]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %y = add(%c, %b)
      %z = multiply(%c, %b)
      output y = %y
      output z = %z
    })");
}

TEST(FuseConvolution, LeavesAloneASumThatBroadcastsOtherwise) {
  expect_no_change("fuse_convolution", R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[4, 1, 1, 2], parameter %b: fp32[4, 1]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %y = add(%c, %b)
      output y = %y
    })");
}

TEST(FuseConvolution, LeavesAloneAConvolutionAddedToItself) {
  expect_no_change("fuse_convolution", R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[4, 1, 1, 2]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %y = add(%c, %c)
      output y = %y
    })");
}

TEST(FuseConvolution, LeavesAloneASumThatGrows) {
  expect_no_change("fuse_convolution", R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[4, 1, 1, 2], input %more: fp32[3, 4, 4, 4]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %y = add(%c, %more)
      output y = %y
    })");
}

}  // namespace
}  // namespace tessera::testing
