// What a device has no kernel of its own for becomes simpler operators in the graph, where all else sees it.
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

// As the definition of the operator.
PassContext expanding_norms() {
  PassContext context;
  context.target.expansion = [](const Node& node) -> GraphRule {
    if (node.operator_name() != "layer_norm") return {};
    return [](const Node& norm, const std::vector<Value*>& inputs) -> std::vector<Value*> {
      const ops::ReduceOptions rows{.axes = {1}, .keep_dimensions = true};
      Value* mean = ops::reduce_mean(inputs[0], rows);
      Value* centered = ops::subtract(inputs[0], mean);
      Value* variance = ops::reduce_mean(ops::square(centered), rows);
      Value* inverse = ops::rsqrt(ops::add(variance, norm.attributes().real("epsilon")));
      Value* y = ops::add(ops::multiply(ops::multiply(centered, inverse), inputs[1]), inputs[2]);
      const SymbolicShape& statistics = norm.output(1)->shape();
      return {y, ops::reshape(mean, statistics), ops::reshape(inverse, statistics)};
    };
  };
  return context;
}

const std::string kNorm =
    R"(graph g(input %x: fp32[3, 8], parameter %scale: fp32[8], parameter %bias: fp32[8]) {
  %w = exp(%x)
  %y, %mean, %inverse = layer_norm(%w, %scale, %bias) {epsilon = 0.001}
  %z = relu(%y)
  output z = %z
  output mean = %mean
})";

TEST(ExpandOperators, PutsWhatTheDeviceSaysInTheNodesPlace) {
  const std::unique_ptr<Graph> before = parse_graph(kNorm);
  const std::unique_ptr<Graph> after = parse_graph(kNorm);
  EXPECT_TRUE(run_pass(*after, "expand_operators", expanding_norms()));
  verify(*after);
  expect_same_results(*before, *after, kReordered);
  for (const auto& node : after->nodes()) EXPECT_NE(node->operator_name(), "layer_norm");
  EXPECT_NE(after->find("y/rsqrt"), nullptr) << print(*after);  // named after the node that it is of
}

TEST(ExpandOperators, WhatIsExpandedJoinsWhatIsAround) {
  const std::unique_ptr<Graph> graph = parse_graph(kNorm);
  run_pipeline(*graph, pipeline({}), expanding_norms(), {.disabled = {}, .verify = true, .dump = {}});
  // The exponential and the first mean; the variance; the rest with the activation.
  EXPECT_LE(graph->nodes().size(), 5U) << print(*graph);
  expect_same_results(*parse_graph(kNorm), *graph, kReordered);
}

TEST(ExpandOperators, MakesPrimitivesOfComposites) {
  const std::string text = "graph g(input %x: fp32[5]) { %y = mish(%x) output y = %y }";
  const std::unique_ptr<Graph> graph = parse_graph(text);
  EXPECT_TRUE(run_pass(*graph, "expand_operators"));
  for (const auto& node : graph->nodes()) EXPECT_FALSE(node->schema().decompose) << print(*graph);
  expect_same_results(*parse_graph(text), *graph, kReordered);
}

TEST(ExpandOperators, NotWhatTheDeviceHasAKernelFor) {
  expect_no_change("expand_operators", kNorm);
  expect_no_change("expand_operators", "graph g(input %x: fp32[5]) { %y = exp(%x) output y = %y }",
                   expanding_norms());
}

TEST(ExpandOperators, NotInsideFusedNodes) {
  const std::unique_ptr<Graph> graph = parse_graph(kNorm);
  Node* norm = graph->find("y")->producer();
  fuse_nodes(*graph, "norm_with_relu", {norm, graph->find("z")->producer()},
             {graph->find("mean"), graph->find("z")});
  EXPECT_FALSE(run_pass(*graph, "expand_operators", expanding_norms()));
}

}  // namespace
}  // namespace tessera::testing
