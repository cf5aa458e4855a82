#include "tessera/passes/fuse.h"

#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

void expect_fusion(const std::string& text, const std::string& expected,
                   const PassContext& context = brings(batch_norm_patterns())) {
  expect_pass("fuse_patterns", text, expected, context);
}

void expect_none(const std::string& text, const PassContext& context = brings(batch_norm_patterns())) {
  expect_no_change("fuse_patterns", text, context);
}

TEST(BatchNormPatterns, TakesResidualAndReluAndKeepsTheStatistics) {
  expect_fusion(R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %residual: fp32[2, 3, 3, 4]) {
      %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
      %sum = add(%n, %residual)
      %y = relu(%sum)
      output y = %y
      output mean = %mean
    })",
                R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %residual: fp32[2, 3, 3, 4]) {
      %y, %mean = fused(%x, %scale, %bias, %residual) {kind = "batch_norm", role_values = [0, 1, 2, 4, 5, 6, 3, 8], roles = ["x", "scale", "bias", "y", "mean", "variance", "residual", "relu"]} body graph batch_norm(
        input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %residual: fp32[2, 3, 3, 4]) {
        %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
        %sum = add(%n, %residual)
        %y = relu(%sum)
        output y0 = %y
        output y1 = %mean
      }
      output y = %y
      output mean = %mean
    })");
}

TEST(BatchNormPatterns, KeepsAReluAfterWhatIsReadTwice) {
  expect_none(R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4]) {
      %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
      %y = relu(%n)
      output y = %y
      output n = %n
    })");
}

TEST(BatchNormPatterns, KeepsASumThatBroadcasts) {
  expect_none(R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4]) {
      %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
      %y = add(%n, %bias)
      output y = %y
    })");
}

// The gradient of relu after batch normalization reads x, not y.
TEST(BatchNormPatterns, FindsTheMaskFromTheInput) {
  const std::string inputs = R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %dy: fp32[2, 3, 3, 4]) {)";
  expect_fusion(inputs + R"(
      %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
      %y = relu(%n)
      %zero = constant() {value = fp32[] (0)}
      %open = greater(%y, %zero)
      %dn = select(%open, %dy, %zero)
      %dx, %dscale, %dbias = batch_norm_gradient(%dn, %x, %scale, %mean, %variance)
      output y = %y
      output dx = %dx
      output dbias = %dbias
    })",
                inputs + R"(
      %y, %mean, %variance = fused(%x, %scale, %bias) {kind = "batch_norm", role_values = [0, 1, 2, 3, 4, 5, 6], roles = ["x", "scale", "bias", "y", "mean", "variance", "relu"]} body graph batch_norm(
        input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4]) {
        %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
        %y = relu(%n)
        output y0 = %y
        output y1 = %mean
        output y2 = %variance
      }
      %dx, %dbias = fused(%x, %scale, %bias, %mean, %variance, %dy) {kind = "batch_norm_gradient", role_values = [9, 0, 1, 3, 4, 10, 11, 12, 9, 5, 2], roles = ["output_gradient", "x", "scale", "mean", "variance", "input_gradient", "scale_gradient", "bias_gradient", "masked", "dy", "mask_bias"]} body
        graph batch_norm_gradient(
        input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %mean: fp32[4],
        input %variance: fp32[4], input %dy: fp32[2, 3, 3, 4]) {
        %batch_norm_inference: fp32[2, 3, 3, 4] = batch_norm_inference(%x, %scale, %bias, %mean, %variance)
        %zero = constant() {value = fp32[] (0)}
        %open = greater(%batch_norm_inference, %zero)
        %dn = select(%open, %dy, %zero)
        %dx, %dscale, %dbias = batch_norm_gradient(%dn, %x, %scale, %mean, %variance)
        output y0 = %dx
        output y1 = %dbias
      }
      output y = %y
      output dx = %dx
      output dbias = %dbias
    })");
}

TEST(BatchNormPatterns, GradientTakesSumAndMaskAndHandsOutTheMaskedGradient) {
  const std::string inputs = R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %y: fp32[2, 3, 3, 4], input %scale: fp32[4], input %mean: fp32[4],
            input %variance: fp32[4], input %dy: fp32[2, 3, 3, 4], input %dy2: fp32[2, 3, 3, 4]) {)";
  expect_fusion(inputs + R"(
      %zero = constant() {value = fp32[] (0)}
      %sum = add(%dy, %dy2)
      %open = greater(%y, %zero)
      %dn = select(%open, %sum, %zero)
      %dx, %dscale, %dbias = batch_norm_gradient(%dn, %x, %scale, %mean, %variance)
      output dx = %dx
      output dn = %dn
    })",
                inputs + R"(
      %dn, %dx = fused(%dy, %dy2, %y, %x, %scale, %mean, %variance) {kind = "batch_norm_gradient", role_values = [10, 3, 4, 5, 6, 11, 12, 13, 10, 0, 1, 2], roles = ["output_gradient", "x", "scale", "mean", "variance", "input_gradient", "scale_gradient", "bias_gradient", "masked", "dy", "dy2", "mask"]} body
        graph batch_norm_gradient(
        input %dy: fp32[2, 3, 3, 4], input %dy2: fp32[2, 3, 3, 4], input %y: fp32[2, 3, 3, 4],
        input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %mean: fp32[4], input %variance: fp32[4]) {
        %sum = add(%dy, %dy2)
        %zero = constant() {value = fp32[] (0)}
        %open = greater(%y, %zero)
        %dn = select(%open, %sum, %zero)
        %dx, %dscale, %dbias = batch_norm_gradient(%dn, %x, %scale, %mean, %variance)
        output y0 = %dn
        output y1 = %dx
      }
      output dx = %dx
      output dn = %dn
    })");
}

// Dead code may be removed later, or never.
TEST(BatchNormPatterns, LeavesAGradientThatNothingReads) {
  expect_none(R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %mean: fp32[4],
            input %variance: fp32[4], input %dy: fp32[2, 3, 3, 4], input %dy2: fp32[2, 3, 3, 4]) {
      %sum = add(%dy, %dy2)
      %dx, %dscale, %dbias = batch_norm_gradient(%sum, %x, %scale, %mean, %variance)
      output y = %x
    })");
}

TEST(BatchNormPatterns, TakesARecomputedResult) {
  const std::string inputs = R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %mean: fp32[4],
            input %variance: fp32[4]) {)";
  expect_fusion(inputs + R"(
      %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance)
      %y = relu(%n)
      output y = %y
    })",
                inputs + R"(
      %y = fused(%x, %scale, %bias, %mean, %variance) {kind = "batch_norm_inference", role_values = [0, 1, 2, 3, 4, 5, 6], roles = ["x", "scale", "bias", "mean", "variance", "y", "relu"]} body graph
        batch_norm_inference(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4],
        input %mean: fp32[4], input %variance: fp32[4]) {
        %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance)
        %y = relu(%n)
        output y0 = %y
      }
      output y = %y
    })");
}

TEST(BatchNormPatterns, LeavesInferenceToClusters) {
  expect_none(R"(
    graph g(input %x: fp32[2, 3, 3, 4], parameter %scale: fp32[4], parameter %bias: fp32[4],
            state %mean: fp32[4], state %variance: fp32[4]) {
      %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance)
      %y = relu(%n)
      output y = %y
    })");
}

TEST(BatchNormPatterns, KeepsAMaskOfAnotherKind) {
  expect_none(R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %y: fp32[2, 3, 3, 4], input %scale: fp32[4], input %mean: fp32[4],
            input %variance: fp32[4], input %dy: fp32[2, 3, 3, 4]) {
      %one = constant() {value = fp32[] (1)}
      %zero = constant() {value = fp32[] (0)}
      %open = greater(%y, %one)
      %dn = select(%open, %dy, %zero)
      %dx, %dscale, %dbias = batch_norm_gradient(%dn, %x, %scale, %mean, %variance)
      output dx = %dx
    })");
}

TEST(BatchNormPatterns, MakesTheStatisticsOfNothing) {
  for (const auto& [x, channels] : {std::pair("fp32[4, 0]", "fp32[0]"), std::pair("fp32[0, 4]", "fp32[4]")}) {
    const auto before = parse_graph(fmt::format(R"(graph g(input %x: {0}, input %scale: {1}) {{
      %y, %mean, %variance = batch_norm_training(%x, %scale, %scale)
      output mean = %mean
      output variance = %variance
    }})",
                                                x, channels));
    const auto after = before->clone();
    EXPECT_TRUE(run_pass(*after, "reduce_to_statistics"));
    verify(*after);
    EXPECT_TRUE(nodes_of(*after, "batch_norm_training").empty());
    expect_same_results(*before, *after, {});
  }
}

}  // namespace
}  // namespace tessera::testing
