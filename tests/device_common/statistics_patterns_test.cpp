#include <algorithm>

#include "tessera/device/common/convolution_patterns.h"

#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

// A device that takes a convolution with normalizations before it, where it takes statistics.
PassContext taking(bool statistics, const backend::TakesNormalizedInput& normalized) {
  const auto taken = [statistics](const Node& convolution) {
    EXPECT_EQ(convolution.operator_name(), "convolution");
    return statistics;
  };
  std::vector<FusionPattern> patterns{
      backend::batch_norm_gradient_pattern(), backend::normalized_convolution_pattern(normalized),
      alternative(backend::convolution_statistics_pattern(taken)), backend::batch_norm_pattern()};
  return brings(std::move(patterns));
}

PassContext context_of(bool statistics) {
  return taking(statistics, [](const Node&, size_t, bool) { return false; });
}

// Statistics that are off by roundings to fp32 move what is rounded to bf16 by at most one unit in its last
// place.
const Tolerance kOneUnit{.absolute = kReordered.absolute, .relative = 2 * unit_roundoff(DataType::bf16)};

std::string text(const std::string& type) {
  const std::string x = type + "[2, 5, 5, 4]";
  return "graph g(input %x: " + x + ", input %weight: " + type +
         R"([6, 1, 1, 4], input %scale: fp32[6], input %bias: fp32[6]) {
    %c = convolution(%x, %weight) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
    %n, %mean, %variance = batch_norm_training(%c, %scale, %bias) {epsilon = 0.01}
    %y = relu(%n)
    output y = %y
    output c = %c
    output mean = %mean
    output variance = %variance
  })";
}

TEST(ConvolutionStatistics, AreMadeByTheConvolution) {
  for (const auto& [type, tolerance] :
       std::vector<std::pair<std::string, Tolerance>>{{"bf16", kOneUnit}, {"fp32", kReordered}}) {
    const std::unique_ptr<Graph> before = parse_graph(text(type));
    const std::unique_ptr<Graph> after = parse_graph(text(type));
    ASSERT_TRUE(run_pass(*after, "fuse_patterns", context_of(true)));
    verify(*after);
    const auto count = [&](std::string_view name) {
      return std::count_if(after->nodes().begin(), after->nodes().end(),
                           [&](const auto& node) { return node->operator_name() == name; });
    };
    EXPECT_EQ(count("batch_norm_training"), 0);
    ASSERT_EQ(count("fused"), 1);
    const Node* fused = after->outputs()[1].value->producer();
    EXPECT_EQ(fused->attributes().text("kind"), "convolution_statistics");
    EXPECT_EQ(fused->outputs().size(), 3U);
    expect_same_results(*before, *after, tolerance);
  }
}

// Kernels add up what they have multiplied.
TEST(ConvolutionStatistics, AreLeftToTheNormalizationOfAConvolutionWithABias) {
  const PassContext own = taking(true, [](const Node&, size_t, bool) { return true; });
  expect_no_change("fuse_patterns", with_window(R"(graph g(input %x: fp16[2, 5, 5, 4],
    input %weight: fp16[6, 1, 1, 4], input %own: fp16[6], input %scale: fp32[6], input %bias: fp32[6]) {
    %c = convolution(%x, %weight, %own) {$WINDOW}
    %n, %mean, %variance = batch_norm_training(%c, %scale, %bias) {epsilon = 0.01}
    output n = %n
    output mean = %mean
  })"),
                   own);
}

TEST(ConvolutionStatistics, AreLeftWhereTheDeviceDoesNotTakeThem) {
  for (const PassContext& own : {PassContext(), context_of(false)}) {
    for (const char* type : {"bf16", "fp32"}) {
      const std::unique_ptr<Graph> graph = parse_graph(text(type));
      run_pass(*graph, "fuse_patterns", own);
      const std::string printed = print(*graph);
      EXPECT_EQ(printed.find("convolution_statistics"), std::string::npos) << type;
      EXPECT_NE(printed.find("batch_norm_training"), std::string::npos) << type;
    }
  }
}

// The mask from x needs the normalization that the statistics replace: gradients come first.
TEST(ConvolutionStatistics, LeaveTheGradientItsMaskFromX) {
  const std::string graph_text = R"(graph g(input %x: bf16[2, 5, 5, 4], input %weight: bf16[6, 1, 1, 4],
      input %scale: fp32[6], input %bias: fp32[6], input %dy: bf16[2, 5, 5, 6]) {
    %c = convolution(%x, %weight) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
    %n, %mean, %variance = batch_norm_training(%c, %scale, %bias)
    %y = relu(%n)
    %zero = constant() {value = bf16[] (0)}
    %open = greater(%y, %zero)
    %dn = select(%open, %dy, %zero)
    %dx, %dscale, %dbias = batch_norm_gradient(%dn, %c, %scale, %mean, %variance)
    output y = %y
    output dx = %dx
  })";
  const std::unique_ptr<Graph> graph = parse_graph(graph_text);
  ASSERT_TRUE(run_pass(*graph, "fuse_patterns", context_of(true)));
  verify(*graph);
  const std::string printed = print(*graph);
  EXPECT_NE(printed.find("batch_norm_inference"), std::string::npos) << printed;
  EXPECT_NE(printed.find("convolution_statistics"), std::string::npos) << printed;
  expect_same_results(*parse_graph(graph_text), *graph, kOneUnit);
}

// Two convolutions with a normalization each, the first large, and what stands between them.
std::string chain(const std::string& between, const std::string& others = "",
                  const std::string& window = "1, 1") {
  const std::string kWindow =
      "dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]";
  return R"(graph g(input %x: bf16[2, 5, 5, 4], input %weight: bf16[6, 1, 1, 4], input %scale: fp32[6],
      input %bias: fp32[6], input %weight2: bf16[3, )" +
         window + R"(, 6], input %scale2: fp32[3], input %bias2: fp32[3], input %residual: bf16[2, 5, 5, 6],
      input %weight3: bf16[6, 1, 1, 4], input %scale3: fp32[6], input %bias3: fp32[6]) {
    %c = convolution(%x, %weight) {)" +
         kWindow + R"(}
    %n, %mean, %variance = batch_norm_training(%c, %scale, %bias)
)" + between +
         "    %c2 = convolution(%y, %weight2) {" + kWindow + R"(}
    %n2, %mean2, %variance2 = batch_norm_training(%c2, %scale2, %bias2)
    output c2 = %c2
    output n2 = %n2
    output y = %y
)" + others +
         "}";
}

PassContext normalizing(bool statistics = true) {
  return taking(statistics, [](const Node&, size_t, bool) { return true; });
}

// The fused node of that kind, of which there is at most one.
const Node* fused_node(const Graph& graph, const std::string& kind) {
  for (const auto& node : graph.nodes()) {
    if (node->body() != nullptr && node->attributes().text("kind") == kind) return node.get();
  }
  return nullptr;
}

void expect_normalized_convolution(const std::string& text, size_t inputs) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  ASSERT_TRUE(run_pass(*graph, "fuse_patterns", normalizing()));
  verify(*graph);
  const Node* fused = fused_node(*graph, "normalized_convolution");
  ASSERT_NE(fused, nullptr) << print(*graph);
  EXPECT_EQ(fused->outputs().size(), 4U);
  EXPECT_EQ(fused->inputs().size(), inputs);
  EXPECT_EQ(fused->output(3), graph->outputs()[2].value);
  expect_same_results(*parse_graph(text), *graph, kOneUnit);
}

const std::string kWithResidual = "    %s = add(%n, %residual)\n    %y = relu(%s)\n";
const std::string kTwoNorms = R"(
    %c3 = convolution(%x, %weight3) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
    %n3, %mean3, %variance3 = batch_norm_training(%c3, %scale3, %bias3)
    %s = add(%n, %n3)
    %y = relu(%s)
)";

// x, mean, factor and bias of each normalization, the residual and the weight.
TEST(ConvolutionStatistics, TakeTheNormalizationBefore) {
  expect_normalized_convolution(chain("    %y = relu(%n)\n"), 5);
  expect_normalized_convolution(chain(kWithResidual), 6);
  expect_normalized_convolution(chain(kTwoNorms), 9);
}

TEST(ConvolutionStatistics, LeaveTheNormalizationBeforeWhereOthersReadItOrTheDeviceRefuses) {
  const auto expect_none = [](const std::string& text, const PassContext& context) {
    const std::unique_ptr<Graph> graph = parse_graph(text);
    run_pass(*graph, "fuse_patterns", context);
    EXPECT_EQ(fused_node(*graph, "normalized_convolution"), nullptr) << print(*graph);
  };
  expect_none(chain(kWithResidual, "    output n = %n\n"), normalizing());
  expect_none(chain(kWithResidual, "    output s = %s\n"), normalizing());
  expect_none(chain("    %y = sigmoid(%n)\n"), normalizing());
  expect_none(chain(kWithResidual), context_of(true));
  // The first result does not have its statistics from the convolution.
  expect_none(chain(kWithResidual), normalizing(false));
  const PassContext refusing =
      taking(true, [](const Node& convolution, size_t normalizations, bool residual) {
        EXPECT_EQ(convolution.input(0)->name(), "y");
        EXPECT_EQ(normalizations, 1U);
        EXPECT_TRUE(residual);
        return false;
      });
  expect_none(chain(kWithResidual), refusing);
}

// What else reads the convolution stands between it and the normalization, and moves after what is fused.
TEST(ConvolutionStatistics, MayHaveAReaderBetween) {
  const std::string graph_text = R"(graph g(input %x: fp32[2, 5, 5, 4], input %weight: fp32[6, 1, 1, 4],
      input %scale: fp32[6], input %bias: fp32[6]) {
    %c = convolution(%x, %weight) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
    %between = exp(%c)
    %n, %mean, %variance = batch_norm_training(%c, %scale, %bias)
    %y = relu(%n)
    output between = %between
    output y = %y
  })";
  const std::unique_ptr<Graph> before = parse_graph(graph_text);
  const std::unique_ptr<Graph> after = parse_graph(graph_text);
  ASSERT_TRUE(run_pass(*after, "fuse_patterns", context_of(true)));
  verify(*after);
  expect_same_results(*before, *after, kReordered);
}

}  // namespace
}  // namespace tessera::testing
