#include <cmath>

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

PassContext frozen() {
  PassContext context;
  context.options.frozen = true;
  return context;
}

const char* const kInputs = R"(graph g(input %x: fp32[2, 5, 5, 4], parameter %w: fp32[6, 3, 3, 2],
    parameter %scale: fp32[6], parameter %bias: fp32[6], state %mean: fp32[6], state %variance: fp32[6],
    parameter %own: fp32[6], input %given: fp32[6]) {)";
const char* const kConvolution =
    "%c = convolution(%x, %w) {dilations = [1, 1], groups = 2, padding_high = [1, 1], padding_low = [1, 1], "
    "strides = [2, 2]}\n";

size_t count(const Graph& graph, const std::string& operator_name) {
  size_t result = 0;
  for (const auto& node : graph.nodes()) result += node->operator_name() == operator_name ? 1 : 0;
  return result;
}

// Sums of 18 products of x, w, scale and one over the deviation, all within 2 but for the last, which is at
// most one over the root of a half; the bias is one term more.
const Tolerance kFolded = tolerance_for(OperatorClass::contraction, DataType::fp32,
                                        {.terms = 3 * 3 * 2 + 1, .magnitude = 2 * 2 * 2 * std::sqrt(2.0)});

void expect_folded(const std::string& rest) {
  const std::string text = kInputs + std::string(kConvolution) + rest + "}";
  const auto before = parse_graph(text);
  const auto after = parse_graph(text);
  EXPECT_TRUE(run_pass(*after, "fold_batch_norm", frozen()));
  verify(*after);
  EXPECT_EQ(count(*after, "batch_norm_inference"), 0);
  EXPECT_EQ(count(*after, "convolution"), 1);
  // All that is left on the activation is one sum with one number per channel.
  const Node* sum = after->outputs()[0].value->producer();
  EXPECT_EQ(sum->operator_name(), "add");
  EXPECT_EQ(sum->input(0)->producer()->operator_name(), "convolution");
  EXPECT_EQ(sum->input(1)->shape(), SymbolicShape{6});
  expect_same_results(*before, *after, kFolded);
}

TEST(FoldBatchNorm, MovesIntoTheWeight) {
  expect_folded(R"(
    %n = batch_norm_inference(%c, %scale, %bias, %mean, %variance) {epsilon = 0.001}
    output y = %n)");
}

TEST(FoldBatchNorm, TakesTheBiasOfTheConvolutionAlong) {
  expect_folded(R"(
    %biased = add(%c, %own)
    %n = batch_norm_inference(%biased, %scale, %bias, %mean, %variance)
    output y = %n)");
}

TEST(FoldBatchNorm, TakesTheConvolutionsOwnInputAlong) {
  const std::string text = kInputs + std::string(R"(
    %c = convolution(%x, %w, %own) {dilations = [1, 1], groups = 2, padding_high = [1, 1], padding_low = [1, 1],
                                    strides = [2, 2]}
    %n = batch_norm_inference(%c, %scale, %bias, %mean, %variance)
    output y = %n})");
  const auto before = parse_graph(text);
  const auto after = parse_graph(text);
  EXPECT_TRUE(run_pass(*after, "fold_batch_norm", frozen()));
  verify(*after);
  EXPECT_EQ(count(*after, "batch_norm_inference"), 0);
  expect_same_results(*before, *after, kFolded);
}

TEST(FoldBatchNorm, KeepsWhatDependsOnAnInput) {
  expect_no_change("fold_batch_norm", kInputs + std::string(kConvolution) + R"(
    %n = batch_norm_inference(%c, %given, %bias, %mean, %variance)
    output y = %n})",
                   frozen());
}

TEST(FoldBatchNorm, KeepsAConvolutionThatIsReadTwice) {
  expect_no_change("fold_batch_norm", kInputs + std::string(kConvolution) + R"(
    %n = batch_norm_inference(%c, %scale, %bias, %mean, %variance)
    output y = %n
    output c = %c})",
                   frozen());
}

TEST(FoldBatchNorm, KeepsABiasThatIsAnInput) {
  expect_no_change("fold_batch_norm", kInputs + std::string(kConvolution) + R"(
    %biased = add(%c, %given)
    %n = batch_norm_inference(%biased, %scale, %bias, %mean, %variance)
    output y = %n})",
                   frozen());
}

const char* const kConstants = R"(graph g(input %x: fp32[2, 5, 5, 4], ROLE %w: fp32[6, 3, 3, 2],
    constant %scale: fp32[6], constant %bias: fp32[6], constant %mean: fp32[6], constant %variance: fp32[6],
    parameter %last: fp32[6]) {
    %c = convolution(%x, %w) {dilations = [1, 1], groups = 2, padding_high = [1, 1], padding_low = [1, 1],
                              strides = [2, 2]}
    %n = batch_norm_inference(%c, %scale, %bias, %mean, %variance)
    %r = relu(%n)
    %y = multiply(%r, %last)
    %next = multiply(%last, %scale)
    output y = %y
    update %last = %next
})";

std::string with_weight(const std::string& role) {
  std::string text = kConstants;
  return text.replace(text.find("ROLE"), 4, role);
}

// Whatever else is trained, as above the frozen first layers of a detector.
TEST(FoldBatchNorm, FoldsConstantsInATrainingGraphToo) {
  const auto before = parse_graph(with_weight("constant"));
  const auto after = before->clone();
  EXPECT_TRUE(run_pass(*after, "fold_batch_norm"));
  verify(*after);
  EXPECT_EQ(count(*after, "batch_norm_inference"), 0);
  expect_same_results(*before, *after, kFolded);
}

TEST(FoldBatchNorm, KeepsAConvolutionThatIsTrained) {
  expect_no_change("fold_batch_norm", with_weight("parameter"));
}

TEST(FoldBatchNorm, NeedsFrozenParameters) {
  expect_no_change("fold_batch_norm", kInputs + std::string(kConvolution) + R"(
    %n = batch_norm_inference(%c, %scale, %bias, %mean, %variance)
    output y = %n})");
}

}  // namespace
}  // namespace tessera::testing
