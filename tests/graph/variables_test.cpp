// Inputs that live on the device: constants, and states with an initial value.
#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

constexpr const char* kVariables = R"(graph g(
  input %x: fp32[2],
  constant %mean: fp32[2],
  state %scale: fp32[] = 1,
  state %history: fp32[4] = -0,
  state %counter: int64[2] = (9007199254740993, 1),
  state %empty: fp32[0] = (),
  state %plain: fp32[2]) {
  %y: fp32[2] = subtract(%x, %mean)
  output y = %y
  update %plain = %y
}
)";

TEST(Constant, IsARoleOfItsOwnInTheText) {
  const auto graph = parse_graph(kVariables);
  EXPECT_EQ(print(*graph), kVariables);
  EXPECT_EQ(graph->find("mean")->role(), InputRole::constant);
}

TEST(Constant, HasNoOtherRoleBesideIt) {
  EXPECT_ERROR(parse_graph("graph g(state constant %c: fp32[2]) {\n}"), ErrorCode::invalid_graph, "%x",
               "constant");
}

TEST(Constant, IsNotUpdated) {
  Graph graph;
  Value* mean = graph.add_input(InputRole::constant, "mean", {DataType::fp32, {}});
  EXPECT_FALSE(mean->may_be_updated());
  EXPECT_ERROR(graph.add_update(mean, ops::add(mean, 1.0)), ErrorCode::invalid_graph, "'mean'",
               "no parameter or state");
  EXPECT_ERROR(parse_graph("graph g(constant %c: fp32[2]) {\n  update %c = %c\n}"), ErrorCode::invalid_graph,
               ":3", "no parameter or state");
}

TEST(InitialValue, IsKeptByTextAndCopies) {
  const auto graph = parse_graph(kVariables);
  const auto copy = graph->clone();
  EXPECT_EQ(print(*copy), kVariables);
  EXPECT_EQ(copy->find("scale")->initial()->to_doubles(), std::vector<double>{1});
  EXPECT_TRUE(copy->find("history")->initial()->identical(Tensor::full(DataType::fp32, {4}, -0.0)));
  EXPECT_TRUE(
      copy->find("counter")->initial()->identical(Tensor::from<int64_t>({2}, {(int64_t{1} << 53) + 1, 1})));
  EXPECT_EQ(copy->find("empty")->initial()->size(), 0);
  EXPECT_EQ(copy->find("plain")->initial(), nullptr);
}

// One number for all elements would lose the sign of the zero.
TEST(InitialValue, IsOneNumberOnlyWhereAllBitsAreTheSame) {
  Graph graph;
  graph.add_input(InputRole::state, "s", {DataType::fp32, {2}}, Tensor::from<float>({2}, {0.0F, -0.0F}));
  EXPECT_NE(print(graph).find("fp32[2] = (0, -0)"), std::string::npos);
}

TEST(InitialValue, BelongsToStatesOfItsType) {
  Graph graph;
  const Tensor one = Tensor::scalar(DataType::fp32, 1);
  const auto add = [&](InputRole role, TensorType type) {
    return graph.add_input(role, "s", std::move(type), one);
  };
  for (const InputRole role : {InputRole::input, InputRole::parameter, InputRole::constant})
    EXPECT_ERROR(add(role, {DataType::fp32, {}}), ErrorCode::invalid_graph, "'s' is no state");
  EXPECT_ERROR(add(InputRole::state, {DataType::fp16, {}}), ErrorCode::invalid_graph, "fp16[]", "fp32[]");
  EXPECT_ERROR(add(InputRole::state, {DataType::fp32, {1}}), ErrorCode::invalid_graph, "fp32[1]");
  EXPECT_ERROR(add(InputRole::state, {DataType::fp32, {Dimension::symbol("n")}}), ErrorCode::invalid_graph,
               "fp32[n]");
  EXPECT_EQ(graph.find("s"), nullptr);
  EXPECT_NO_THROW(add(InputRole::state, {DataType::fp32, {}}));
}

TEST(InitialValue, IsRefusedWhereTheTextIsWrong) {
  const auto parse = [](const std::string& input) {
    return parse_graph("graph g(\n  " + input + ") {\n}", "file");
  };
  EXPECT_ERROR(parse("state %s: fp32[3] = (1, 2)"), ErrorCode::invalid_graph, "file:2", "','");
  EXPECT_ERROR(parse("state %s: fp32[n] = 1"), ErrorCode::invalid_graph, "file:2", "n");
  EXPECT_ERROR(parse("state %s: int64[2] = 1.5"), ErrorCode::invalid_graph, "file:2", "not an integer");
  EXPECT_ERROR(parse("parameter %s: fp32[2] = 1"), ErrorCode::invalid_graph, "file:2", "no state");
  EXPECT_ERROR(parse("state %s: fp32[99999999999] = 1"), ErrorCode::invalid_graph, "file:2", "too large");
  EXPECT_ERROR(parse("state %s: fp32[10000000] = 1, state %t: fp32[10000000] = 1"), ErrorCode::invalid_graph,
               "file:2", "too large");
}

}  // namespace
}  // namespace tessera::testing
