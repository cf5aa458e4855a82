// Optional operands that are left out, wherever they stand.
#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "support/expect_error.h"
#include "support/sample_operators.h"

namespace tessera::testing {
namespace {

constexpr const char* kWithoutBias = R"(graph g(
  input %x: fp32[n, 2],
  input %scale: fp32[n, 2],
  input %offset: fp32[n, 2]) {
  %y: fp32[n, 2] = sample_affine(%x, _, %scale, %offset)
  output y = %y
}
)";

class LeftOutOperands : public ::testing::Test {
 protected:
  LeftOutOperands() { register_sample_operators(); }
};

TEST_F(LeftOutOperands, AreAnUnderscoreInTheText) {
  const auto graph = parse_graph(kWithoutBias);
  EXPECT_EQ(print(*graph), kWithoutBias);
  EXPECT_EQ(print(*graph->find("y")->producer()), "%y: fp32[n, 2] = sample_affine(%x, _, %scale, %offset)");
}

TEST_F(LeftOutOperands, LeaveNoGapAmongTheInputs) {
  const auto graph = parse_graph(kWithoutBias);
  const Node& node = *graph->find("y")->producer();
  ASSERT_EQ(node.inputs().size(), 3u);
  EXPECT_EQ(node.operand(0), graph->find("x"));
  EXPECT_EQ(node.operand(1), nullptr);
  EXPECT_EQ(node.operand(2), graph->find("scale"));
  EXPECT_EQ(node.operand(3), graph->find("offset"));
  EXPECT_EQ(node.place(1), std::nullopt);
  EXPECT_EQ(node.place(2), 1u);
  EXPECT_EQ(node.place(3), 2u);
  EXPECT_EQ(node.specification(1).name, "scale");
  EXPECT_EQ(node.specification(2).name, "offset");
  EXPECT_EQ(node.operands(node.inputs()),
            (std::vector<Value*>{graph->find("x"), nullptr, graph->find("scale"), graph->find("offset")}));
}

TEST_F(LeftOutOperands, StayLeftOutInCopies) {
  const auto graph = parse_graph(kWithoutBias);
  EXPECT_EQ(print(*graph->clone()), kWithoutBias);
  const auto bound = specialize(*graph, {{"n", 3}});
  verify(*bound);
  EXPECT_EQ(bound->find("y")->producer()->operand(1), nullptr);
  EXPECT_EQ(bound->find("y")->type().static_shape(), (Shape{3, 2}));
}

TEST_F(LeftOutOperands, AreSkippedByTheReference) {
  const auto graph = specialize(*parse_graph(kWithoutBias), {{"n", 1}});
  const std::vector<Tensor> inputs{Tensor::from<float>({1, 2}, {2, 3}), Tensor::from<float>({1, 2}, {5, 7}),
                                   Tensor::from<float>({1, 2}, {1, 1})};
  EXPECT_EQ(run_reference(*graph, inputs).outputs[0].to_doubles(), (std::vector<double>{9, 20}));
}

// d(x * scale - offset) is scale, x and -1: one gradient for each operand that is there.
TEST_F(LeftOutOperands, HaveNoGradient) {
  const auto graph = specialize(*parse_graph(kWithoutBias), {{"n", 1}});
  Value* loss = ops::reduce_sum(graph->find("y"));
  const std::vector<Value*> sources{graph->find("x"), graph->find("scale"), graph->find("offset")};
  graph->erase_outputs();
  for (Value* gradient : differentiate(*graph, loss, sources)) graph->add_output("d", gradient);
  verify(*graph);
  const std::vector<Tensor> inputs{Tensor::from<float>({1, 2}, {2, 3}), Tensor::from<float>({1, 2}, {5, 7}),
                                   Tensor::from<float>({1, 2}, {1, 1})};
  const std::vector<Tensor> gradients = run_reference(*graph, inputs).outputs;
  EXPECT_EQ(gradients[0].to_doubles(), (std::vector<double>{5, 7}));
  EXPECT_EQ(gradients[1].to_doubles(), (std::vector<double>{2, 3}));
  EXPECT_EQ(gradients[2].to_doubles(), (std::vector<double>{-1, -1}));
}

TEST_F(LeftOutOperands, MustBeOptional) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2}});
  Value* wide = graph.add_input(InputRole::input, "wide", {DataType::fp64, {2}});
  Value* other = graph.add_input(InputRole::input, "other", {DataType::fp32, {3}});
  const auto affine = [&](const std::vector<Value*>& operands) {
    return graph.add_node("sample_affine", operands, {}, "node");
  };
  EXPECT_ERROR(affine({x, x, x}), ErrorCode::invalid_graph, "node", "'offset' may not be left out");
  EXPECT_ERROR(affine({nullptr, x, x, x}), ErrorCode::invalid_graph, "'x' may not be left out",
               "(_, fp32[2], fp32[2], fp32[2])");
  EXPECT_ERROR(affine({x, nullptr, nullptr, nullptr}), ErrorCode::invalid_graph, "at least 2 inputs, got 1");
  EXPECT_ERROR(affine({x, nullptr, nullptr, x, x}), ErrorCode::invalid_graph, "got 3");
  EXPECT_ERROR(affine({x, nullptr, wide, x}), ErrorCode::invalid_graph, "'scale' is fp64");
  EXPECT_ERROR(affine({x, nullptr, other, x}), ErrorCode::invalid_graph, "scale must be as x");
  EXPECT_ERROR(parse_graph("graph g(input %x: fp32[2]) {\n  %y = add(%x, _)\n}"), ErrorCode::invalid_graph,
               ":3", "inputs");
  EXPECT_NO_THROW(affine({x, x, x, x}));
}

// What is left out at the end is just not there.
TEST_F(LeftOutOperands, LeaveNoTraceAtTheEnd) {
  const auto graph = parse_graph(R"(graph g(input %x: fp32[1, 4, 4, 2], input %w: fp32[3, 1, 1, 2]) {
  %y = convolution(%x, %w, _) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
  output y = %y
})");
  const Node& node = *graph->find("y")->producer();
  EXPECT_EQ(node.inputs().size(), 2u);
  EXPECT_EQ(node.operand(2), nullptr);
  EXPECT_EQ(node.operands(node.inputs()), node.inputs());
  EXPECT_NE(print(node).find("convolution(%x, %w) "), std::string::npos);
}

}  // namespace
}  // namespace tessera::testing
