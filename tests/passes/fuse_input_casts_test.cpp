#include <set>

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

// Of a device that takes what `takes` names: operators, or kinds of fused nodes.
PassContext options(std::set<std::string> takes = {"convolution", "convolution_statistics",
                                                   "convolution_weight_gradient"}) {
  PassContext options;
  options.target.takes_wide_image = [takes = std::move(takes)](const Node& node) {
    return takes.contains(node.body() == nullptr ? node.operator_name() : node.attributes().text("kind"));
  };
  return options;
}

void expect_fused(const std::string& before, const std::string& after,
                  const PassContext& passes = options()) {
  expect_pass("fuse_input_casts", with_window(before), with_window(after), passes, {0, 0});
}

void expect_kept(const std::string& text, const PassContext& passes = options()) {
  expect_no_change("fuse_input_casts", with_window(text), passes);
}

const std::string kInputs = R"(
  graph g(input %images: fp32[2, 4, 4, 2], parameter %w: fp16[4, 1, 1, 2], parameter %b: fp16[4]) {)";
const std::string kCast = R"(
    %image = cast(%images) {type = fp16})";
const std::string kBiased = R"(
    %x = fused(%image, %w, %b) {kind = "convolution", role_values = [0, 1, 3, 2], roles = ["x", "weight", "y", "bias"]} body graph convolution(
      input %image: fp16[2, 4, 4, 2], input %w: fp16[4, 1, 1, 2], input %b: fp16[4]) {
      %c = convolution(%image, %w) {$WINDOW}
      %x = add(%c, %b)
      output y0 = %x
    })";
const std::string kBiasedOfImages = R"(
    %x = fused(%images, %w, %b) {kind = "convolution", role_values = [3, 1, 4, 2, 0], roles = ["x", "weight", "y", "bias", "wide_image"]} body graph convolution(
      input %images: fp32[2, 4, 4, 2], input %w: fp16[4, 1, 1, 2], input %b: fp16[4]) {
      %cast = cast(%images) {type = fp16}
      %c = convolution(%cast, %w) {$WINDOW}
      %x = add(%c, %b)
      output y0 = %x
    })";
const std::string kBetween = R"(
    %dx = multiply(%x, %x))";
const std::string kGradient = R"(
    %dw = convolution_weight_gradient(%image, %dx) {$WINDOW, weight_shape = [4, 1, 1, 2]})";
const std::string kOutputs = R"(
    output x = %x
    output dw = %dw
  })";

TEST(FuseInputCasts, RoundsTheImagesInEachConvolutionThatReadsThem) {
  expect_fused(kInputs + kCast + kBiased + kBetween + kGradient + kOutputs,
               kInputs + kBiasedOfImages + kBetween + R"(
    %dw = fused(%images, %dx) {kind = "convolution_weight_gradient", role_values = [0, 2, 1, 3], roles = ["wide_image", "x", "output_gradient", "weight_gradient"]} body graph convolution_weight_gradient(
      input %images: fp32[2, 4, 4, 2], input %dx: fp16[2, 4, 4, 4]) {
      %cast = cast(%images) {type = fp16}
      %dw = convolution_weight_gradient(%cast, %dx) {$WINDOW, weight_shape = [4, 1, 1, 2]}
      output y0 = %dw
    })" + kOutputs);
}

TEST(FuseInputCasts, TakesFusedNodesOfSeveralOutputsWithTheirNames) {
  const std::string inputs = "graph g(input %images: fp32[2, 4, 4, 2], parameter %w: fp16[4, 1, 1, 2]) {";
  const std::string rest = R"(
      %sum = reduce_sum(%x) {axes = [0, 1, 2]}
      output y0 = %x
      output y1 = %sum
    }
    output x = %x
    output sum = %sum
  })";
  expect_fused(inputs + kCast + R"(
    %x: fp16[2, 4, 4, 4], %sum: fp16[4] = fused(%image, %w) {kind = "convolution_statistics", role_values = [0, 1, 2], roles = ["x", "weight", "y"]} body graph convolution_statistics(
      input %image: fp16[2, 4, 4, 2], input %w: fp16[4, 1, 1, 2]) {
      %x = convolution(%image, %w) {$WINDOW})" +
                   rest,
               inputs + R"(
    %x: fp16[2, 4, 4, 4], %sum: fp16[4] = fused(%images, %w) {kind = "convolution_statistics", role_values = [2, 1, 3, 0], roles = ["x", "weight", "y", "wide_image"]} body graph convolution_statistics(
      input %images: fp32[2, 4, 4, 2], input %w: fp16[4, 1, 1, 2]) {
      %cast = cast(%images) {type = fp16}
      %x = convolution(%cast, %w) {$WINDOW})" +
                   rest);
}

TEST(FuseInputCasts, MakesTheCastLateForWhoeverNeedsIt) {
  expect_fused(kInputs + kCast + kBiased + kBetween + kGradient + kOutputs,
               kInputs + kBiasedOfImages + kBetween + R"(
    %cast = cast(%images) {type = fp16}
    %dw = convolution_weight_gradient(%cast, %dx) {$WINDOW, weight_shape = [4, 1, 1, 2]})" +
                   kOutputs,
               options({"convolution"}));
}

TEST(FuseInputCasts, LeavesCastsThatNoKernelTakes) {
  const std::string step = kInputs + kCast + kBiased + kBetween + kGradient + kOutputs;
  expect_kept(step, options({}));
  expect_kept(step, {});
}

TEST(FuseInputCasts, LeavesOutputsWeightsAndWhatIsNoInput) {
  const std::string rest = R"(
    %x = convolution(%image, %w) {$WINDOW}
    output x = %x)";
  expect_kept(kInputs + kCast + rest + "\n    output image = %image\n  }");
  expect_kept(kInputs + R"(
    %roots = sqrt(%images)
    %image = cast(%roots) {type = fp16})" +
              rest + "\n  }");
  expect_kept(R"(
  graph g(state %images: fp32[2, 4, 4, 2], parameter %w: fp16[4, 1, 1, 2]) {)" +
              kCast + rest + "\n  }");
  expect_kept(R"(
  graph g(input %images: fp64[2, 4, 4, 2], parameter %w: fp16[4, 1, 1, 2]) {)" +
              kCast + rest + "\n  }");
  // The weight.
  expect_kept(R"(
  graph g(input %image: fp16[2, 4, 4, 2], input %weights: fp32[4, 1, 1, 2]) {
    %w = cast(%weights) {type = fp16})" +
              rest + "\n  }");
}

}  // namespace
}  // namespace tessera::testing
