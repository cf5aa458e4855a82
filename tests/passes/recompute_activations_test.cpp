#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

void expect_recomputed(const std::string& before, const std::string& after) {
  expect_pass("recompute_activations", with_window(before), with_window(after));
}

void expect_kept(const std::string& text, const PassContext& context = {}) {
  expect_no_change("recompute_activations", with_window(text), context);
}

// convolution -> batch norm -> relu -> convolution, and the gradients; dz stands for what the loss sends
// back.
const std::string kInputs = R"(
  graph g(input %image: fp32[2, 4, 4, 2], parameter %w1: fp32[4, 1, 1, 2], input %scale: fp32[4],
          input %bias: fp32[4], parameter %w2: fp32[4, 1, 1, 4]) {)";
const std::string kForward = R"(
    %x = convolution(%image, %w1) {$WINDOW}
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %y = relu(%n)
    %z = convolution(%y, %w2) {$WINDOW})";
const std::string kBackward = R"(
    %dz = multiply(%z, %z)
    %dy = convolution_data_gradient(%dz, %w2) {$WINDOW, input_shape = [2, 4, 4, 4]})";
const std::string kLate = R"(
    %dw2 = convolution_weight_gradient(%y, %dz) {$WINDOW, weight_shape = [4, 1, 1, 4]})";
const std::string kRecomputed = R"(
    %y.recomputed/batch_norm_inference = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
    %y.recomputed/relu = relu(%y.recomputed/batch_norm_inference)
    %dw2 = convolution_weight_gradient(%y.recomputed/relu, %dz) {$WINDOW, weight_shape = [4, 1, 1, 4]})";
const std::string kMask = R"(
    %zero = constant() {value = fp32[] (0)}
    %open = greater(%y, %zero)
    %dn = select(%open, %dy, %zero))";
const std::string kGradient = R"(
    %dx, %dscale, %dbias = batch_norm_gradient(%dn, %x, %scale, %mean, %variance) {epsilon = 0.01}
    %dw1 = convolution_weight_gradient(%image, %dx) {$WINDOW, weight_shape = [4, 1, 1, 2]})";
const std::string kOutputs = R"(
    output z = %z
    output dw1 = %dw1
    output dw2 = %dw2
  })";

TEST(RecomputeActivations, GivesTheWeightGradientACopyMadeFromWhatIsKept) {
  expect_recomputed(kInputs + kForward + kBackward + kLate + kMask + kGradient + kOutputs,
                    kInputs + kForward + kBackward + kRecomputed + kMask + kGradient + kOutputs);
}

// Both the mask and the copy become one pass over memory, and y itself stays one with the normalization.
TEST(RecomputeActivations, LeavesTheFusionsTheirPatterns) {
  const auto graph =
      parse_graph(with_window(kInputs + kForward + kBackward + kLate + kMask + kGradient + kOutputs));
  const auto before = graph->clone();
  ASSERT_TRUE(run_pass(*graph, "recompute_activations"));
  ASSERT_TRUE(run_pass(*graph, "fuse_patterns", brings(batch_norm_patterns())));
  verify(*graph);
  std::vector<std::string> kinds;
  for (const auto& node : graph->nodes()) {
    if (node->body() != nullptr) kinds.push_back(node->attributes().text("kind"));
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"batch_norm", "batch_norm_inference", "batch_norm_gradient"}));
  EXPECT_EQ(graph->find("y")->uses().size(), 1u);
  // The copy is normalized by statistics that were rounded to fp32.
  expect_same_results(*before, *graph, kReordered);
}

TEST(RecomputeActivations, CanBeSwitchedOff) {
  expect_kept(kInputs + kForward + kBackward + kLate + kMask + kGradient + kOutputs,
              {.options = {.recompute = false}});
}

TEST(RecomputeActivations, KeepsWhatOnlyTheForwardHalfReads) {
  // A second forward reader, which depends on the first, is no late one either.
  expect_kept(kInputs + kForward + R"(
    %residual = add(%y, %z)
    %dz = multiply(%residual, %z)
    %dy = convolution_data_gradient(%dz, %w2) {$WINDOW, input_shape = [2, 4, 4, 4]})" +
              kMask + kGradient + R"(
    output z = %residual
    output dw1 = %dw1
  })");
}

TEST(RecomputeActivations, CountsAResidualAfterTheReluAsForward) {
  const std::string forward = kInputs + kForward + R"(
    %residual = add(%y, %z)
    %dz = multiply(%residual, %z)
    %dsum = convolution_data_gradient(%dz, %w2) {$WINDOW, input_shape = [2, 4, 4, 4]}
    %dy = add(%dsum, %dz))";
  expect_recomputed(forward + kLate + kMask + kGradient + kOutputs,
                    forward + kRecomputed + kMask + kGradient + kOutputs);
}

TEST(RecomputeActivations, KeepsAnOutputOfTheGraph) {
  expect_kept(kInputs + kForward + kBackward + kLate + kMask + kGradient + R"(
    output y = %y
    output dw1 = %dw1
    output dw2 = %dw2
  })");
}

TEST(RecomputeActivations, KeepsItWhereTheInputIsNotKept) {
  // The first layers are not trained.
  expect_kept(kInputs + kForward + R"(
    %dz = multiply(%z, %z))" +
              kLate + R"(
    output z = %z
    output dw2 = %dw2
  })");
  // The weight gradient stands after the normalization's.
  expect_kept(kInputs + kForward + kBackward + kMask + kGradient + kLate + kOutputs);
}

TEST(RecomputeActivations, KeepsASumWithAResidual) {
  expect_kept(R"(
  graph g(input %image: fp32[2, 4, 4, 2], parameter %w1: fp32[4, 1, 1, 2], input %scale: fp32[4],
          input %bias: fp32[4], parameter %w2: fp32[4, 1, 1, 4], input %residual: fp32[2, 4, 4, 4]) {
    %x = convolution(%image, %w1) {$WINDOW}
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %sum = add(%n, %residual)
    %y = relu(%sum)
    %z = convolution(%y, %w2) {$WINDOW})" +
              kBackward + kLate + kMask + kGradient + kOutputs);
}

TEST(RecomputeActivations, KeepsWhatAReaderBesideTheHalvesNeeds) {
  // Neither does the gradient need the sum, nor the sum the convolution.
  expect_kept(kInputs + kForward + R"(
    %total = reduce_sum(%y))" +
              kBackward + kLate + kMask + kGradient + R"(
    output total = %total
    output dw1 = %dw1
    output dw2 = %dw2
  })");
}

// The copy of y is of 512 bytes; the nodes of the graph write some thousands.
TEST(RecomputeActivations, MakesCopiesAgainThatAreTogetherAShareOfAll) {
  const std::string before = kInputs + kForward + kBackward + kLate + kMask + kGradient + kOutputs;
  const std::unique_ptr<Graph> graph = parse_graph(with_window(before));
  double written = 0;
  for (const auto& node : graph->nodes()) {
    for (const auto& output : node->outputs()) written += static_cast<double>(output->type().bytes());
  }
  const double share = 512 / written;
  expect_kept(before, {.target = {.recompute_limit_bytes = 0, .recompute_share = 0.99 * share}});
  expect_pass("recompute_activations", with_window(before),
              with_window(kInputs + kForward + kBackward + kRecomputed + kMask + kGradient + kOutputs),
              {.target = {.recompute_limit_bytes = 0, .recompute_share = 1.01 * share}});
  const auto of_large = [&](double large_step) {
    return PassTarget{.recompute_limit_bytes = 0,
                      .recompute_share = 0.99 * share,
                      .recompute_share_of_large_steps = 1.01 * share,
                      .large_step_bytes = static_cast<int64_t>(large_step)};
  };
  expect_kept(before, {.target = of_large(written + 1)});
  expect_pass("recompute_activations", with_window(before),
              with_window(kInputs + kForward + kBackward + kRecomputed + kMask + kGradient + kOutputs),
              {.target = of_large(written)});
  expect_kept(before, {.options = {.recompute = false}, .target = {.recompute_share = 1}});
}

TEST(RecomputeActivations, MakesNoCopyForAKernelThatMakesItsOwn) {
  const std::string before = kInputs + kForward + kBackward + kLate + kMask + kGradient + kOutputs;
  std::vector<std::string> asked;
  const auto makes = [&](const Node& reader) {
    asked.push_back(reader.output()->name());
    return true;
  };
  expect_kept(before, {.target = {.recomputes_activation = makes}});
  EXPECT_EQ(asked, std::vector<std::string>{"dw2"});
}

// The images, cast for the first layer and for its weight gradient.
const std::string kCast = R"(
  graph g(input %images: fp32[2, 4, 4, 2], parameter %w: fp16[4, 1, 1, 2]) {
    %image = cast(%images) {type = fp16})";
const std::string kFirstLayer = R"(
    %x = convolution(%image, %w) {$WINDOW}
    %dx = multiply(%x, %x))";
const std::string kFirstGradient = R"(
    output x = %x
    output dw = %dw
  })";

TEST(RecomputeActivations, GivesTheFirstWeightGradientACastOfItsOwn) {
  expect_recomputed(kCast + kFirstLayer + R"(
    %dw = convolution_weight_gradient(%image, %dx) {$WINDOW, weight_shape = [4, 1, 1, 2]})" +
                        kFirstGradient,
                    kCast + kFirstLayer + R"(
    %image.recomputed/cast = cast(%images) {type = fp16}
    %dw = convolution_weight_gradient(%image.recomputed/cast, %dx) {$WINDOW, weight_shape = [4, 1, 1, 2]})" +
                        kFirstGradient);
}

TEST(RecomputeActivations, KeepsACastThatMoreReadOrThatIsNotOfAnInput) {
  const std::string gradient = R"(
    %dw = convolution_weight_gradient(%image, %dx) {$WINDOW, weight_shape = [4, 1, 1, 2]})";
  expect_kept(kCast + kFirstLayer + gradient + R"(
    %other = exp(%image)
    output other = %other)" +
              kFirstGradient);
  expect_kept(kCast + kFirstLayer + gradient + R"(
    output image = %image)" +
              kFirstGradient);
  expect_kept(kCast + kFirstLayer + gradient + kFirstGradient, {.options = {.recompute = false}});
  expect_kept(kCast + kFirstLayer + gradient + kFirstGradient, {.target = {.recompute_limit_bytes = 127}});
  expect_kept(R"(
  graph g(input %images: fp32[2, 4, 4, 2], parameter %w: fp16[4, 1, 1, 2]) {
    %roots = sqrt(%images)
    %image = cast(%roots) {type = fp16})" +
              kFirstLayer + gradient + kFirstGradient);
  // Neither waits for the other.
  expect_kept(R"(
  graph g(input %images: fp32[2, 4, 4, 2], parameter %w: fp16[4, 1, 1, 2], input %dx: fp16[2, 4, 4, 4]) {
    %image = cast(%images) {type = fp16}
    %x = convolution(%image, %w) {$WINDOW})" +
              gradient + kFirstGradient);
}

TEST(RecomputeActivations, HasNothingToDoInInference) {
  expect_kept(R"(
  graph g(input %x: fp32[2, 4, 4, 4], parameter %scale: fp32[4], parameter %bias: fp32[4], state %mean: fp32[4],
          state %variance: fp32[4], parameter %w: fp32[4, 1, 1, 4]) {
    %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance)
    %y = relu(%n)
    %z = convolution(%y, %w) {$WINDOW}
    output z = %z
  })");
}

}  // namespace
}  // namespace tessera::testing
