// Nodes that hold graphs: as many as their operator says.
#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "support/expect_error.h"
#include "support/sample_operators.h"

namespace tessera::testing {
namespace {

constexpr const char* kChoice = R"(graph g(
  input %condition: bool[],
  input %x: fp32[n]) {
  %y: fp32[n] = sample_choice(%condition, %x) body graph then(
    input %a: fp32[n]) {
    %b: fp32[n] = exp(%a)
    output y = %b
  } body graph otherwise(
    input %a: fp32[n]) {
    %b: fp32[n] = negate(%a)
    output y = %b
  }
  output y = %y
}
)";

class Bodies : public ::testing::Test {
 protected:
  Bodies() { register_sample_operators(); }
};

TEST_F(Bodies, FollowEachOtherInTheText) {
  const auto graph = parse_graph(kChoice);
  EXPECT_EQ(print(*graph), kChoice);
  EXPECT_EQ(print(*graph->clone()), kChoice);
  const Node& node = *graph->find("y")->producer();
  ASSERT_EQ(node.bodies().size(), 2u);
  EXPECT_EQ(node.bodies()[1]->name(), "otherwise");
  EXPECT_EQ(node.body(), nullptr) << "it is not fused";
}

TEST_F(Bodies, AreSpecializedWithTheirNode) {
  const auto graph = specialize(*parse_graph(kChoice), {{"n", 3}});
  verify(*graph);
  for (const auto& body : graph->find("y")->producer()->bodies())
    EXPECT_EQ(body->inputs()[0]->type().static_shape(), (Shape{3}));
}

TEST_F(Bodies, AreRunByTheReferenceOfTheirOperator) {
  const auto graph = specialize(*parse_graph(kChoice), {{"n", 2}});
  const Tensor x = Tensor::from<float>({2}, {0, 0});
  const Tensor no = Tensor::full(DataType::boolean, {}, 0);
  const Tensor yes = Tensor::full(DataType::boolean, {}, 1);
  EXPECT_EQ(run_reference(*graph, std::vector<Tensor>{yes, x}).outputs[0].at(0), 1);
  EXPECT_EQ(run_reference(*graph, std::vector<Tensor>{no, x}).outputs[0].at(0), 0);
}

TEST_F(Bodies, AreAsManyAsTheSchemaSays) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2}});
  Value* condition = graph.add_input(InputRole::input, "condition", {DataType::boolean, {}});
  const auto body = [] {
    auto result = std::make_unique<Graph>("body");
    result->add_output("y", ops::exp(result->add_input(InputRole::input, "a", {DataType::fp32, {2}})));
    return result;
  };
  EXPECT_ERROR(graph.add_node("sample_choice", {condition, x}, {}, "node", body()), ErrorCode::invalid_graph,
               "node", "it needs 2 bodies, got 1");
  EXPECT_ERROR(graph.add_node("sample_choice", {condition, x}), ErrorCode::invalid_graph, "got 0");
  EXPECT_ERROR(graph.add_node("exp", {x}, {}, "node", body()), ErrorCode::invalid_graph, "it takes no body");
  EXPECT_ERROR(graph.add_node("fused", {x}, {{"kind", "k"}}), ErrorCode::invalid_graph, "it needs a body");
}

TEST_F(Bodies, AreVerifiedWithTheirGraph) {
  const auto graph = parse_graph(kChoice);
  Graph& otherwise = *graph->find("y")->producer()->bodies()[1];
  // A reader before what it reads.
  Value* late = ops::exp(otherwise.find("a"));
  otherwise.set_input(otherwise.find("b")->producer(), 0, late);
  EXPECT_ERROR(verify(*graph), ErrorCode::invalid_graph, "otherwise", "before it is made");
}

TEST_F(Bodies, BelongToControlAndFusedOperatorsOnly) {
  OperatorSchema schema{.name = "sample_wrong"};
  schema.bodies = 1;
  EXPECT_ERROR(OperatorRegistry::instance().add(schema), ErrorCode::internal, "'sample_wrong'", "1 bodies");
  schema.operator_class = OperatorClass::control;
  schema.bodies = 0;
  EXPECT_ERROR(OperatorRegistry::instance().add(schema), ErrorCode::internal, "0 bodies");
  schema.operator_class = OperatorClass::fused;
  schema.bodies = 2;
  EXPECT_ERROR(OperatorRegistry::instance().add(schema), ErrorCode::internal, "2 bodies");
}

}  // namespace
}  // namespace tessera::testing
