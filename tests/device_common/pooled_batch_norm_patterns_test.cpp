#include "tessera/device/common/convolution_patterns.h"

#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

PassContext pooling() {
  return brings({backend::pooled_batch_norm_gradient_pattern(), backend::pooled_batch_norm_pattern()});
}

const std::string kPass = "fuse_patterns";
const std::string kWindow = "padding_high = [1, 1], padding_low = [1, 1], strides = [2, 2], window = [3, 3]";
const std::string kPool = "max_pool(%r) {" + kWindow + "}";

const std::string kInputs = R"(
  graph g(input %x: fp32[2, 5, 6, 4], input %scale: fp32[4], input %bias: fp32[4]) {)";

const std::string kForward = R"(
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %r = relu(%n)
    %y, %position = )" + kPool +
                             "\n    output y = %y\n";

TEST(PooledBatchNormPatterns, NormalizesAndPoolsInOneStep) {
  expect_pass(kPass, kInputs + kForward + "output position = %position\noutput mean = %mean\n}", kInputs + R"(
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %y, %position = fused(%x, %scale, %bias, %mean, %variance) {kind = "batch_norm_max_pool", role_values = [6, 7, 0, 1, 2, 3, 4, 5], roles = ["relu", "pooling", "x", "scale", "bias", "mean", "variance", "y"]} body
      graph batch_norm_max_pool(input %x: fp32[2, 5, 6, 4], input %scale: fp32[4], input %bias: fp32[4],
      input %mean: fp32[4], input %variance: fp32[4]) {
      %batch_norm_inference = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
      %r = relu(%batch_norm_inference)
      %y, %position = )" + kPool + R"(
      output y0 = %y
      output y1 = %position
    }
    output y = %y
    output position = %position
    output mean = %mean
  })",
              pooling());
}

const std::string kTrainingInputs = R"(
  graph g(input %x: fp32[2, 5, 6, 4], input %scale: fp32[4], input %bias: fp32[4], input %dy: fp32[2, 3, 3, 4]) {)";

const std::string kBackward = R"(
    %g = max_pool_gradient(%dy, %position) {input_shape = [2, 5, 6, 4], )" +
                              kWindow + R"(}
    %zero = constant() {value = fp32[] (0)}
    %open = greater(%r, %zero)
    %dz = select(%open, %g, %zero)
    %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance) {epsilon = 0.01}
    output dx = %dx
    output dscale = %dscale
)";

// Both halves, so that nothing is left that reads the relu's result.
TEST(PooledBatchNormPatterns, TakesTheGradientWithTheMaskFromTheInput) {
  expect_pass(kPass, kTrainingInputs + kForward + kBackward + "}",
              kTrainingInputs + R"(
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %y, %position = fused(%x, %scale, %bias, %mean, %variance) {kind = "batch_norm_max_pool", role_values = [6, 7, 0, 1, 2, 3, 4, 5], roles = ["relu", "pooling", "x", "scale", "bias", "mean", "variance", "y"]} body
      graph batch_norm_max_pool(input %x: fp32[2, 5, 6, 4], input %scale: fp32[4], input %bias: fp32[4],
      input %mean: fp32[4], input %variance: fp32[4]) {
      %batch_norm_inference = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
      %r = relu(%batch_norm_inference)
      %y, %position = )" +
                  kPool + R"(
      output y0 = %y
      output y1 = %position
    }
    %dx, %dscale = fused(%dy, %position, %x, %scale, %bias, %mean, %variance)
      {kind = "max_pool_batch_norm_gradient", role_values = [11, 2, 3, 5, 6, 12, 13, 14, 11, 7, 0, 1, 4], roles = ["output_gradient", "x", "scale", "mean", "variance", "input_gradient", "scale_gradient", "bias_gradient", "masked", "pooling", "dy", "positions", "mask_bias"]} body graph max_pool_batch_norm_gradient(
      input %dy: fp32[2, 3, 3, 4], input %position: uint8[2, 3, 3, 4], input %x: fp32[2, 5, 6, 4],
      input %scale: fp32[4], input %bias: fp32[4], input %mean: fp32[4], input %variance: fp32[4]) {
      %g = max_pool_gradient(%dy, %position) {input_shape = [2, 5, 6, 4], )" +
                  kWindow + R"(}
      %batch_norm_inference = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
      %zero = constant() {value = fp32[] (0)}
      %open = greater(%batch_norm_inference, %zero)
      %dz = select(%open, %g, %zero)
      %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance) {epsilon = 0.01}
      output y0 = %dx
      output y1 = %dscale
    }
    output y = %y
    output dx = %dx
    output dscale = %dscale
  })",
              pooling());
}

TEST(PooledBatchNormPatterns, LeavesWhatOthersRead) {
  expect_no_change(kPass, kInputs + kForward + "output r = %r\n}", pooling());
  expect_no_change(kPass, kInputs + kForward + "output n = %n\n}", pooling());
  // The mask needs the relu's result itself, which is thus in memory.
  expect_no_change(kPass, kTrainingInputs + kForward + kBackward + "output dz = %dz\n}", pooling());
  expect_no_change(kPass, kTrainingInputs + kForward + kBackward + "output g = %g\n}", pooling());
}

TEST(PooledBatchNormPatterns, LeavesAGradientThatNothingReads) {
  const std::string unread = kBackward.substr(0, kBackward.find("output dx"));
  expect_no_change(kPass, kTrainingInputs + kForward + unread + "}", pooling());
}

TEST(PooledBatchNormPatterns, LeavesOtherPoolingsAndDevices) {
  expect_no_change(kPass,
                   kInputs + R"(
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    %r = relu(%n)
    %y = average_pool(%r) {)" +
                       kWindow + R"(}
    output y = %y
  })",
                   pooling());
  expect_no_change(kPass,
                   kInputs + R"(
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    %y, %position = max_pool(%n) {)" +
                       kWindow + R"(}
    output y = %y
  })",
                   pooling());
  expect_no_change(kPass, kTrainingInputs + kForward + kBackward + "}");
}

// Of the mask of another normalization the gradient's x says nothing.
TEST(PooledBatchNormPatterns, LeavesTheMaskOfAnotherNormalization) {
  expect_no_change(kPass,
                   R"(
  graph g(input %x: fp32[2, 5, 6, 4], input %scale: fp32[4], input %mean: fp32[4], input %variance: fp32[4],
          input %r: fp32[2, 5, 6, 4], input %position: uint8[2, 3, 3, 4], input %dy: fp32[2, 3, 3, 4]) {)" +
                       kBackward + "}",
                   pooling());
}

// The normalization that only its statistics are read of.
TEST(PooledBatchNormPatterns, LeavesStatisticsOfOnePass) {
  const std::string text = kTrainingInputs + kForward + kBackward + "}";
  const std::unique_ptr<Graph> graph = parse_graph(text);
  ASSERT_TRUE(run_pass(*graph, kPass, pooling()));
  ASSERT_TRUE(run_pass(*graph, "reduce_to_statistics"));
  verify(*graph);
  const std::string printed = print(*graph);
  EXPECT_EQ(printed.find("batch_norm_training("), std::string::npos) << printed;
  EXPECT_NE(printed.find("reduce_mean"), std::string::npos) << printed;
  // The variance of 60 pixels becomes the difference of two means.
  expect_same_results(*parse_graph(text), *graph, kReordered);
}

TEST(PooledBatchNormPatterns, LetsTheConvolutionMakeTheStatistics) {
  const std::string text = R"(
  graph g(input %image: fp16[2, 5, 6, 8], input %weight: fp16[4, 1, 1, 8], input %scale: fp32[4], input %bias: fp32[4]) {
    %x = convolution(%image, %weight) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
)" + kForward + "}";
  PassContext with_statistics = pooling();
  with_statistics.target.patterns.push_back(
      backend::convolution_statistics_pattern([](const Node&) { return true; }));
  const std::unique_ptr<Graph> graph = parse_graph(text);
  ASSERT_TRUE(run_pass(*graph, kPass, with_statistics));
  verify(*graph);
  const std::string printed = print(*graph);
  EXPECT_EQ(printed.find("batch_norm_training("), std::string::npos) << printed;
  EXPECT_NE(printed.find("convolution_statistics"), std::string::npos) << printed;
  // Nothing but the convolution makes a value of x's size.
  for (const auto& node : graph->nodes()) {
    for (const auto& output : node->outputs()) {
      const bool large = output->shape() == SymbolicShape{2, 5, 6, 4};
      EXPECT_EQ(large, output->index() == 0 && node->outputs().size() == 3) << print(*node);
    }
  }
  // By statistics that are off by roundings to fp32, which move a result by at most one unit of fp16 in its
  // last place.
  expect_same_results(*parse_graph(text), *graph,
                      {.absolute = kReordered.absolute, .relative = 2 * unit_roundoff(DataType::fp16)});
}

}  // namespace
}  // namespace tessera::testing
