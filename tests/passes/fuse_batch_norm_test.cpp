#include "tessera/passes/fuse.h"

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

TEST(FuseBatchNorm, TakesResidualAndReluAndKeepsTheStatistics) {
  expect_pass("fuse_batch_norm", R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %residual: fp32[2, 3, 3, 4]) {
      %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
      %sum = add(%n, %residual)
      %y = relu(%sum)
      output y = %y
      output mean = %mean
    })",
              R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %residual: fp32[2, 3, 3, 4]) {
      %y, %mean = fused(%x, %scale, %bias, %residual) {kind = "batch_norm"} body graph batch_norm(
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

TEST(FuseBatchNorm, KeepsAReluBehindWhatIsReadTwice) {
  expect_no_change("fuse_batch_norm", R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4]) {
      %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
      %y = relu(%n)
      output y = %y
      output n = %n
    })");
}

TEST(FuseBatchNorm, KeepsASumThatBroadcasts) {
  expect_no_change("fuse_batch_norm", R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4]) {
      %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
      %y = add(%n, %bias)
      output y = %y
    })");
}

// The gradient of relu behind batch normalization reads x, not y.
TEST(FuseBatchNorm, FindsTheMaskFromTheInput) {
  const std::string inputs = R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %dy: fp32[2, 3, 3, 4]) {)";
  expect_pass("fuse_batch_norm", inputs + R"(
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
      %y, %mean, %variance = fused(%x, %scale, %bias) {kind = "batch_norm"} body graph batch_norm(
        input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4]) {
        %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
        %y = relu(%n)
        output y0 = %y
        output y1 = %mean
        output y2 = %variance
      }
      %dx, %dbias = fused(%x, %scale, %bias, %mean, %variance, %dy) {kind = "batch_norm_gradient"} body
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

TEST(FuseBatchNorm, GradientTakesSumAndMaskAndHandsOutTheMaskedGradient) {
  const std::string inputs = R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %y: fp32[2, 3, 3, 4], input %scale: fp32[4], input %mean: fp32[4],
            input %variance: fp32[4], input %dy: fp32[2, 3, 3, 4], input %dy2: fp32[2, 3, 3, 4]) {)";
  expect_pass("fuse_batch_norm", inputs + R"(
      %zero = constant() {value = fp32[] (0)}
      %sum = add(%dy, %dy2)
      %open = greater(%y, %zero)
      %dn = select(%open, %sum, %zero)
      %dx, %dscale, %dbias = batch_norm_gradient(%dn, %x, %scale, %mean, %variance)
      output dx = %dx
      output dn = %dn
    })",
              inputs + R"(
      %dn, %dx = fused(%dy, %dy2, %y, %x, %scale, %mean, %variance) {kind = "batch_norm_gradient"} body
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
TEST(FuseBatchNorm, LeavesAGradientThatNothingReads) {
  expect_no_change("fuse_batch_norm", R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %mean: fp32[4],
            input %variance: fp32[4], input %dy: fp32[2, 3, 3, 4], input %dy2: fp32[2, 3, 3, 4]) {
      %sum = add(%dy, %dy2)
      %dx, %dscale, %dbias = batch_norm_gradient(%sum, %x, %scale, %mean, %variance)
      output y = %x
    })");
}

TEST(FuseBatchNorm, TakesARecomputedResult) {
  const std::string inputs = R"(
    graph g(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4], input %mean: fp32[4],
            input %variance: fp32[4]) {)";
  expect_pass("fuse_batch_norm", inputs + R"(
      %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance)
      %y = relu(%n)
      output y = %y
    })",
              inputs + R"(
      %y = fused(%x, %scale, %bias, %mean, %variance) {kind = "batch_norm_inference"} body graph
        batch_norm_inference(input %x: fp32[2, 3, 3, 4], input %scale: fp32[4], input %bias: fp32[4],
        input %mean: fp32[4], input %variance: fp32[4]) {
        %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance)
        %y = relu(%n)
        output y0 = %y
      }
      output y = %y
    })");
}

TEST(FuseBatchNorm, LeavesInferenceToClusters) {
  expect_no_change("fuse_batch_norm", R"(
    graph g(input %x: fp32[2, 3, 3, 4], parameter %scale: fp32[4], parameter %bias: fp32[4],
            state %mean: fp32[4], state %variance: fp32[4]) {
      %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance)
      %y = relu(%n)
      output y = %y
    })");
}

TEST(FuseBatchNorm, KeepsAMaskOfAnotherKind) {
  expect_no_change("fuse_batch_norm", R"(
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

TEST(FuseBatchNorm, MakesTheStatisticsOfNothing) {
  for (const auto& [x, channels] : {std::pair("fp32[4, 0]", "fp32[0]"), std::pair("fp32[0, 4]", "fp32[4]")}) {
    const auto before = parse_graph(fmt::format(R"(graph g(input %x: {0}, input %scale: {1}) {{
      %y, %mean, %variance = batch_norm_training(%x, %scale, %scale)
      output mean = %mean
      output variance = %variance
    }})",
                                                x, channels));
    const auto after = before->clone();
    EXPECT_TRUE(run_pass(*after, "fuse_batch_norm"));
    verify(*after);
    EXPECT_TRUE(nodes_of(*after, "batch_norm_training").empty());
    expect_same_results(*before, *after, {});
  }
}

}  // namespace
}  // namespace tessera::testing
