#include "tessera/device/common/convolution_patterns.h"
#include "tessera/passes/fuse.h"

#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

const std::string kPass = "fuse_patterns";
const std::string kAttributes =
    "dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]";

PassContext context(size_t most_normalizations = 2, bool normalized = true) {
  const auto takes = [=](const Node& data_gradient, size_t normalizations) {
    EXPECT_EQ(data_gradient.operator_name(), "convolution_data_gradient");
    return normalizations <= most_normalizations;
  };
  const auto recomputes = [](const Node&, size_t) { return true; };
  return brings({backend::summed_gradients_pattern(takes, recomputes),
                 backend::normalized_gradients_pattern([=](const Node&, size_t) { return normalized; })});
}

// The end of a residual block whose relu's result y the convolution of the next block reads: the gradients of
// that convolution, and of the normalization before y, whose x a convolution of u made.
const std::string kInputs = R"(
  graph g(input %dy: fp32[2, 3, 5, 4], input %weight: fp32[4, 1, 1, 6], input %y: fp32[2, 3, 5, 6],
          input %residual: fp32[2, 3, 5, 6], input %x: fp32[2, 3, 5, 6], input %scale: fp32[6],
          input %mean: fp32[6], input %variance: fp32[6], input %u: fp32[2, 3, 5, 7],
          input %former: fp32[6, 1, 1, 7], input %x2: fp32[2, 3, 5, 6], input %scale2: fp32[6],
          input %mean2: fp32[6], input %variance2: fp32[6]) {
)";
const std::string kSum = R"(
    %d = convolution_data_gradient(%dy, %weight) {input_shape = [2, 3, 5, 6], )" +
                         kAttributes + R"(}
    %sum = add(%d, %residual)
    %zero = constant() {value = fp32[] (0)}
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %zero)
    output dz = %dz
)";
const std::string kWeight = R"(
    %dw = convolution_weight_gradient(%y, %dy) {weight_shape = [4, 1, 1, 6], )" +
                            kAttributes + R"(}
    output dw = %dw
)";
const std::string kNorm = R"(
    %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance) {epsilon = 0.01}
    output dscale = %dscale
    output dbias = %dbias
)";
const std::string kSecondNorm = R"(
    %dx2, %dscale2, %dbias2 = batch_norm_gradient(%dz, %x2, %scale2, %mean2, %variance2) {epsilon = 0.01}
    output dx2 = %dx2
    output dscale2 = %dscale2
    output dbias2 = %dbias2
)";
const std::string kFormer = R"(
    %du = convolution_data_gradient(%dx, %former) {input_shape = [2, 3, 5, 7], )" +
                            kAttributes + R"(}
    %dformer = convolution_weight_gradient(%u, %dx) {weight_shape = [6, 1, 1, 7], )" +
                            kAttributes + R"(}
    output du = %du
    output dformer = %dformer
)";

std::vector<std::string> kinds(const Graph& graph) {
  std::vector<std::string> result;
  for (const auto& node : graph.nodes()) {
    if (node->body() != nullptr) result.push_back(node->attributes().text("kind"));
  }
  return result;
}

// The kinds of the nodes that the pass makes, in the graph's order; what they compute is as before.
std::vector<std::string> fused(const std::string& text, const PassContext& device) {
  const std::unique_ptr<Graph> before = parse_graph(text);
  const std::unique_ptr<Graph> after = parse_graph(text);
  EXPECT_TRUE(run_pass(*after, kPass, device));
  verify(*after);
  // What normalization leaves of the gradient becomes sums over channels, in another order.
  expect_same_results(*before, *after, kReordered);
  return kinds(*after);
}

using Kinds = std::vector<std::string>;

TEST(SummedGradientsPatterns, TakesBothConvolutionsAndTheNormalizationBetweenThem) {
  EXPECT_EQ(fused(kInputs + kSum + kWeight + kNorm + kFormer + "}", context()),
            (Kinds{"summed_gradients", "normalized_gradients"}));
}

// Both fusions are made, and outside of them nothing reads the relu's result.
void expect_no_reader_of_relu(const std::string& text) {
  EXPECT_EQ(fused(text, context()), (Kinds{"summed_gradients", "normalized_gradients"}));
  const std::unique_ptr<Graph> graph = parse_graph(text);
  ASSERT_TRUE(run_pass(*graph, kPass, context()));
  for (const auto& node : graph->nodes()) {
    if (node->operator_name() == "relu") {
      EXPECT_TRUE(node->output()->uses().empty());
    }
  }
}

// The input of the convolution in front is the relu of a normalization too: it is recomputed from that one's
// x.
TEST(SummedGradientsPatterns, RecomputesTheInput) {
  const std::string norm = R"(
    %n, %mean3, %variance3 = batch_norm_training(%u, %scale3, %bias3) {epsilon = 0.01}
    %r = relu(%n)
)";
  std::string inputs = kInputs;
  inputs.replace(inputs.find(") {"), 3, ", input %scale3: fp32[7], input %bias3: fp32[7]) {" + norm);
  std::string former = kFormer;
  former.replace(former.find("(%u,"), 4, "(%r,");
  const std::string text = inputs + kSum + kWeight + kNorm + former + "}";
  expect_no_reader_of_relu(text);
}

TEST(SummedGradientsPatterns, MakesTheSumsOfTwoNormalizations) {
  const std::string text = kInputs + kSum + kWeight + kSecondNorm + kNorm + kFormer + "}";
  EXPECT_EQ(fused(text, context()), (Kinds{"summed_gradients", "normalized_gradients"}));
  const std::unique_ptr<Graph> graph = parse_graph(text);
  ASSERT_TRUE(run_pass(*graph, kPass, context()));
  for (const auto& node : graph->nodes()) {
    EXPECT_NE(node->operator_name(), "batch_norm_gradient");
    if (node->body() != nullptr && node->attributes().text("kind") == "summed_gradients") {
      EXPECT_EQ(node->outputs().size(), 5U);
    }
  }
}

// The relu after the sum of two normalizations is recomputed from what their sums read: nothing keeps its
// result.
TEST(SummedGradientsPatterns, RecomputesTheMask) {
  std::string inputs = kInputs;
  inputs.replace(inputs.find(") {"), 3, R"(, input %bias: fp32[6], input %bias2: fp32[6]) {
    %n, %m, %v = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %n2, %m2, %v2 = batch_norm_training(%x2, %scale2, %bias2) {epsilon = 0.02}
    %s = add(%n2, %n)
    %r = relu(%s)
)");
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string text = inputs + replaced(kSum, "(%y,", "(%r,") + replaced(kWeight, "(%y,", "(%r,") +
                           replaced(kNorm, "%mean, %variance", "%m, %v") +
                           replaced(kSecondNorm, "%mean2, %variance2", "%m2, %v2") + kFormer + "}";
  expect_no_reader_of_relu(text);
}

TEST(SummedGradientsPatterns, LeavesTheWeightGradientWhereTheDeviceWantsIt) {
  const auto always = [](const Node&, size_t) { return true; };
  const auto never = [](const Node&, size_t) { return false; };
  const PassContext data_alone = brings({backend::summed_gradients_pattern(never, always),
                                         alternative(backend::summed_data_gradient_pattern(always)),
                                         backend::normalized_gradients_pattern(always)});
  const std::string text = kInputs + kSum + kWeight + kNorm + kFormer + "}";
  EXPECT_EQ(fused(text, data_alone), (Kinds{"summed_gradients", "normalized_gradients"}));
  const std::unique_ptr<Graph> graph = parse_graph(text);
  ASSERT_TRUE(run_pass(*graph, kPass, data_alone));
  EXPECT_EQ(nodes_of(*graph, "convolution_weight_gradient").size(), 1U);
}

TEST(SummedGradientsPatterns, LeavesTheRestElementwiseWhereTheDeviceOrAReaderWantsIt) {
  EXPECT_EQ(fused(kInputs + kSum + kWeight + kNorm + kFormer + "}", context(2, false)),
            Kinds{"summed_gradients"});
  EXPECT_EQ(fused(kInputs + kSum + kWeight + kNorm + kFormer + "output dx = %dx\n}", context()),
            Kinds{"summed_gradients"});
}

void expect_left(const std::string& text, const PassContext& device) {
  expect_no_change(kPass, text, device);
}

TEST(SummedGradientsPatterns, LeavesWhatTheDeviceRefuses) {
  const std::string all = kInputs + kSum + kWeight + kNorm + kFormer;
  expect_left(all + "}", {});
  expect_left(all + "}", context(0));
  expect_left(all + kSecondNorm + "}", context(1));
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(SummedGradientsPatterns, LeavesWhatIsNotTheSamePattern) {
  const std::string all = kInputs + kSum + kWeight + kNorm + "output dx = %dx\n}";
  // The convolution reads something else than what the mask is of.
  expect_left(with(all, "convolution_weight_gradient(%y,", "convolution_weight_gradient(%x,"), context());
  // Others read the data gradient, or there is no normalization, no weight gradient, or no mask.
  expect_left(with(all, "%zero =", "output d = %d\n %zero ="), context());
  expect_left(kInputs + kSum + kWeight + "}", context());
  expect_left(kInputs + kSum + kNorm + "}", context());
  expect_left(with(all, "select(%open, %sum, %zero)", "select(%open, %zero, %sum)"), context());
  // A window of more than one pixel.
  const std::string wide = "padding_high = [1, 1], padding_low = [1, 1]";
  const auto widened = [&](const std::string& text) {
    return with(with(text, "padding_high = [0, 0], padding_low = [0, 0]", wide), "4, 1, 1, 6", "4, 3, 3, 6");
  };
  expect_left(with(kInputs, "4, 1, 1, 6", "4, 3, 3, 6") +
                  with(kSum, "padding_high = [0, 0], padding_low = [0, 0]", wide) + widened(kWeight) + kNorm +
                  "output dx = %dx\n}",
              context());
}

}  // namespace
}  // namespace tessera::testing
