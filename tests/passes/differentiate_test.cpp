// What differentiate() leaves of the caller's graph; the gradients themselves are tests/ops's.
#include "tessera/passes/differentiate.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

// mish has no gradient rule: its parts have. `taken` is a value of the graph from here on.
struct Composites {
  Graph graph{"g"};
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {3}});
  Value* inner = ops::mish(x);
  Value* outer = ops::mish(ops::multiply(inner, 0.5));
};

// The gradient of the sum of f(at + t direction) by t, for each element of `at`, is what is expected.
std::vector<double> values_of(const Graph& graph, size_t output, const std::vector<float>& x) {
  const auto result = run_reference(graph, std::vector{Tensor::from<float>({3}, x)});
  return result.outputs.at(output).to_doubles();
}

double mish(double x) {
  return x * std::tanh(std::log1p(std::exp(x)));
}
double mish_derivative(double x) {
  return (mish(x + 1e-5) - mish(x - 1e-5)) / 2e-5;
}

// mish and its derivative stay below 1.1 for what is asked for here, and each is some ten nodes, which round
// to fp32; the difference quotient is off by 1e-10.
constexpr double kNodes = 10 * 1.1 * 0x1p-24;

TEST(Differentiate, TakesACompositeToDifferentiateTo) {
  Composites own;
  Value* loss = ops::reduce_sum(own.outer);
  const std::vector<Value*> gradients =
      differentiate(own.graph, loss, std::vector<Value*>{own.inner, own.x, own.outer});
  for (Value* gradient : gradients) own.graph.add_output(gradient->name(), gradient);
  verify(own.graph);
  for (const float x : {-1.0F, 0.5F, 2.0F}) {
    const double to_inner = 0.5 * mish_derivative(0.5 * mish(x));
    EXPECT_NEAR(values_of(own.graph, 0, {x, 0, 0})[0], to_inner, kNodes);
    EXPECT_NEAR(values_of(own.graph, 1, {x, 0, 0})[0], to_inner * mish_derivative(x), 2 * kNodes);
    EXPECT_EQ(values_of(own.graph, 2, {x, 0, 0})[0], 1);
  }
}

TEST(Differentiate, KeepsTheValuesThatTheCallerHolds) {
  Composites own;
  Value* loss = ops::reduce_sum(ops::softplus(own.outer));
  Value* composite_loss = ops::mish(loss);
  const std::string names = own.inner->name() + own.outer->name() + composite_loss->name();
  const std::vector<Value*> gradients = differentiate(own.graph, composite_loss, std::vector<Value*>{own.x});
  EXPECT_EQ(own.inner->name() + own.outer->name() + composite_loss->name(), names);
  for (Value* value : {own.inner, own.outer, composite_loss}) own.graph.add_output(value->name(), value);
  own.graph.add_output("gradient", gradients[0]);
  verify(own.graph);
  EXPECT_NEAR(values_of(own.graph, 0, {1, 0, 0})[0], mish(1), kNodes);
  EXPECT_NEAR(values_of(own.graph, 1, {1, 0, 0})[0], mish(0.5 * mish(1)), 2 * kNodes);
  // A second loss of values from before the first.
  Value* second = ops::reduce_sum(ops::square(own.inner));
  own.graph.add_output("second", differentiate(own.graph, second, std::vector<Value*>{own.x})[0]);
  verify(own.graph);
  EXPECT_NEAR(values_of(own.graph, 4, {1, 0, 0})[0], 2 * mish(1) * mish_derivative(1), 4 * kNodes);
}

// A constant is no way to the loss, and has no gradient when asked for one.
TEST(Differentiate, IgnoresConstants) {
  const auto graph = parse_graph(R"(graph g(input %x: fp32[3], constant %c: fp32[3]) {
  %squared = square(%c)
  %y = multiply(%x, %squared)
  %loss = reduce_sum(%y)
})");
  const std::vector<Value*> gradients =
      differentiate(*graph, graph->find("loss"), std::vector<Value*>{graph->find("x"), graph->find("c")});
  for (Value* gradient : gradients) graph->add_output("d", gradient);
  verify(*graph);
  for (const auto& node : graph->nodes())
    EXPECT_FALSE(node->name().starts_with("squared.gradient")) << print(*graph);
  const std::vector<Tensor> inputs{Tensor::from<float>({3}, {1, 2, 3}), Tensor::from<float>({3}, {2, 3, 4})};
  const std::vector<Tensor> results = run_reference(*graph, inputs).outputs;
  EXPECT_EQ(results[0].to_doubles(), (std::vector<double>{4, 9, 16}));
  EXPECT_EQ(results[1].to_doubles(), (std::vector<double>{0, 0, 0}));
}

TEST(Differentiate, LeavesCompositesToDeadCode) {
  Composites own;
  own.graph.add_output("y", own.outer);
  own.graph.add_output("gradient",
                       differentiate(own.graph, ops::reduce_sum(own.outer), std::vector<Value*>{own.x})[0]);
  EXPECT_TRUE(run_pass(own.graph, "remove_dead_code"));
  EXPECT_TRUE(nodes_of(own.graph, "mish").empty()) << print(own.graph);
}

}  // namespace
}  // namespace tessera::testing
