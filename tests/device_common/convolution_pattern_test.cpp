#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

void expect_fusion(const std::string& text, const std::string& expected,
                   const PassContext& context = brings({backend::contraction_pattern("convolution")})) {
  expect_pass("fuse_patterns", text, expected, context);
}

void expect_none(const std::string& text,
                 const PassContext& context = brings({backend::contraction_pattern("convolution")})) {
  expect_no_change("fuse_patterns", text, context);
}

TEST(ConvolutionPattern, TakesBiasResidualAndActivation) {
  expect_fusion(R"(
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
      %y = fused(%x, %w, %b, %residual) {kind = "convolution", role_values = [0, 1, 4, 2, 5, 6, 7], roles = ["x", "weight", "y", "bias", "biased", "step", "step"]} body graph convolution(
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

TEST(ConvolutionPattern, StopsWhereAnIntermediateIsReadTwice) {
  expect_fusion(R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[3, 1, 1, 2], parameter %b: fp32[3]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %biased = add(%c, %b)
      %y = relu(%biased)
      output y = %y
      output biased = %biased
    })",
                R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[3, 1, 1, 2], parameter %b: fp32[3]) {
      %biased = fused(%x, %w, %b) {kind = "convolution", role_values = [0, 1, 3, 2, 4], roles = ["x", "weight", "y", "bias", "biased"]} body graph convolution(
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

// The residual is made after the convolution: the fused node must come after both.
TEST(ConvolutionPattern, MovesAfterAResidualMadeLater) {
  const std::string text = R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[2, 1, 1, 2]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %later = exp(%x)
      %y = add(%c, %later)
      output y = %y
    })";
  const auto before = parse_graph(text);
  const auto after = parse_graph(text);
  EXPECT_TRUE(run_pass(*after, "fuse_patterns", brings({backend::contraction_pattern("convolution")})));
  verify(*after);
  EXPECT_EQ(after->nodes().size(), 2);
  expect_same_results(*before, *after, kSameBits);
}

TEST(ConvolutionPattern, LeavesAloneWhatIsReadTwice) {
  expect_none(R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[3, 1, 1, 2], parameter %b: fp32[3]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %y = add(%c, %b)
      %z = multiply(%c, %b)
      output y = %y
      output z = %z
    })");
}

TEST(ConvolutionPattern, LeavesAloneASumThatBroadcastsOtherwise) {
  expect_none(R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[4, 1, 1, 2], parameter %b: fp32[4, 1]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %y = add(%c, %b)
      output y = %y
    })");
}

TEST(ConvolutionPattern, LeavesAloneAConvolutionAddedToItself) {
  expect_none(R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[4, 1, 1, 2]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %y = add(%c, %c)
      output y = %y
    })");
}

TEST(ConvolutionPattern, LeavesAloneASumThatGrows) {
  expect_none(R"(
    graph g(input %x: fp32[1, 4, 4, 2], parameter %w: fp32[4, 1, 1, 2], input %more: fp32[3, 4, 4, 4]) {
      %c = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %y = add(%c, %more)
      output y = %y
    })");
}

}  // namespace
}  // namespace tessera::testing
