#include <algorithm>

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

PassOptions options(int64_t bytes) {
  PassOptions options;
  options.convolution_statistics_bytes = bytes;
  return options;
}

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

constexpr int64_t kBytes = 2 * 5 * 5 * 6 * 2;  // of the convolution's result

TEST(ConvolutionStatistics, AreMadeByTheConvolution) {
  const std::unique_ptr<Graph> before = parse_graph(text("bf16"));
  const std::unique_ptr<Graph> after = parse_graph(text("bf16"));
  ASSERT_TRUE(run_pass(*after, "fuse_batch_norm", options(kBytes)));
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
  // One unit in the last place of bf16; the statistics are sums of 50 fp32 numbers.
  expect_same_results(*before, *after, {.absolute = 1.0 / 256, .relative = 1.0 / 128});
}

TEST(ConvolutionStatistics, OfSmallResultsAndOfFp32AreLeft) {
  for (const auto& [type, bytes] :
       std::vector<std::pair<std::string, int64_t>>{{"bf16", kBytes + 1}, {"bf16", 0}, {"fp32", 1}}) {
    const std::unique_ptr<Graph> graph = parse_graph(text(type));
    run_pass(*graph, "fuse_batch_norm", options(bytes));
    const std::string printed = print(*graph);
    EXPECT_EQ(printed.find("convolution_statistics"), std::string::npos) << type << " " << bytes;
    EXPECT_NE(printed.find("batch_norm_training"), std::string::npos) << type << " " << bytes;
  }
}

// The mask from x needs the normalisation that the statistics replace: gradients come first.
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
  ASSERT_TRUE(run_pass(*graph, "fuse_batch_norm", options(1)));
  verify(*graph);
  const std::string printed = print(*graph);
  EXPECT_NE(printed.find("batch_norm_inference"), std::string::npos) << printed;
  EXPECT_NE(printed.find("convolution_statistics"), std::string::npos) << printed;
  expect_same_results(*parse_graph(graph_text), *graph, {.absolute = 1.0 / 64, .relative = 1.0 / 64});
}

}  // namespace
}  // namespace tessera::testing
