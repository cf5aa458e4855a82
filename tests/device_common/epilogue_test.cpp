#include "tessera/device/common/contraction_pattern.h"

#include "passes/run_pass.h"
#include "support/expect_error.h"
#include "support/fusions.h"

namespace tessera::backend {
namespace {

// A matrix product from which `steps` lead from %c to %y, fused with them.
std::unique_ptr<Graph> chain_of(const std::string& steps) {
  std::unique_ptr<Graph> graph = parse_graph(R"(
    graph g(input %x: fp32[2, 3], input %w: fp32[3, 4], input %b: fp32[4], input %s: fp32[2, 4]) {
      %c = matmul(%x, %w)
      )" + steps + R"(
      output y = %y
    })");
  EXPECT_TRUE(testing::run_pass(*graph, "fuse_patterns", testing::brings({contraction_pattern("matmul")})));
  return graph;
}

Epilogue epilogue_of(const Graph& graph) {
  const Node& node = *graph.nodes().front();
  EXPECT_EQ(graph.nodes().size(), 1U) << print(graph);
  return read_epilogue(node, read_chain(node), {"relu"});
}

TEST(Epilogue, IsBiasResidualAndActivation) {
  const auto graph = chain_of("%biased = add(%c, %b) %sum = add(%s, %biased) %y = relu(%sum)");
  const Epilogue epilogue = epilogue_of(*graph);
  const Node& node = *graph->nodes().front();
  EXPECT_EQ(node.input(epilogue.bias.value())->name(), "b");
  EXPECT_EQ(node.input(epilogue.residual.value())->name(), "s");
  ASSERT_NE(epilogue.activation, nullptr);
  EXPECT_EQ(epilogue.activation->operator_name(), "relu");
}

TEST(Epilogue, MayLackAnyOfThem) {
  const auto graph = chain_of("%y = add(%c, %s)");
  const Epilogue epilogue = epilogue_of(*graph);
  EXPECT_FALSE(epilogue.bias.has_value());
  EXPECT_EQ(graph->nodes().front()->input(epilogue.residual.value())->name(), "s");
  EXPECT_EQ(epilogue.activation, nullptr);
}

TEST(Epilogue, RefusesOtherChainsAndSaysWhy) {
  const auto refused = [](const std::string& steps, const std::string& reason) {
    const auto graph = chain_of(steps);
    EXPECT_ERROR(epilogue_of(*graph), ErrorCode::unsupported, reason);
  };
  refused("%r = relu(%c) %y = add(%r, %s)", "'add' after the activation");
  refused("%y = tanh(%c)", "'tanh' is neither");
  refused("%sum = add(%c, %s) %y = add(%sum, %b)", "'add' is neither");
  refused("%y = multiply(%c, %b)", "'multiply' is neither");
}

// As libraries have epilogues: what would break the order stays outside.
TEST(Epilogue, EndsWhereTheDevicesKernelsDo) {
  const auto steps = [](const std::string& text, EpilogueLimits limits) {
    const std::unique_ptr<Graph> graph = parse_graph(R"(
      graph g(input %x: fp32[2, 3], input %w: fp32[3, 4], input %b: fp32[4], input %s: fp32[2, 4]) {
        %c = matmul(%x, %w)
        )" + text + R"(
        output y = %y
      })");
    testing::run_pass(*graph, "fuse_patterns", testing::brings({contraction_pattern("matmul", limits)}));
    const Node& node = *graph->nodes().front();
    return node.body() == nullptr ? size_t{0} : node.body()->nodes().size() - 1;
  };
  const EpilogueLimits ordered{.ordered = true};
  EXPECT_EQ(steps("%d = add(%c, %b) %e = add(%d, %s) %y = relu(%e)", ordered), 3U);
  EXPECT_EQ(steps("%d = add(%c, %s) %y = add(%d, %b)", ordered), 1U);
  EXPECT_EQ(steps("%d = add(%c, %s) %y = add(%d, %b)", {}), 2U);
  EXPECT_EQ(steps("%d = relu(%c) %y = add(%d, %s)", ordered), 1U);
  EXPECT_EQ(steps("%y = multiply(%c, %b)", ordered), 0U);
  EXPECT_EQ(steps("%y = multiply(%c, %b)", {}), 1U);
  const EpilogueLimits relu{
      .takes_activation = [](const Node& node) { return node.operator_name() == "relu"; }};
  EXPECT_EQ(steps("%d = add(%c, %b) %y = tanh(%d)", relu), 1U);
  EXPECT_EQ(steps("%d = add(%c, %b) %y = relu(%d)", relu), 2U);
}

}  // namespace
}  // namespace tessera::backend
