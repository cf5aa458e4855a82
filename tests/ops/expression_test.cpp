#include "tessera/ops/expression.h"

#include <gtest/gtest.h>

#include "ops/examples.h"

namespace tessera::testing {
namespace {

using ops::Expression;

TEST(Expression, ComputesWhatItSays) {
  Graph graph;
  Expression x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2}});
  Value* y = graph.add_input(InputRole::input, "y", {DataType::fp32, {2}});
  graph.add_output("sum", x + y);
  graph.add_output("both", (y - x) * 2 / x);
  graph.add_output("numbers", 1 - 0.5 * -x);
  x = x / y;
  graph.add_output("ratio", x);
  const auto outputs =
      run_reference(graph, std::vector{Tensor::from<float>({2}, {1, 4}), Tensor::from<float>({2}, {2, 8})})
          .outputs;
  EXPECT_EQ(outputs[0].to_doubles(), (std::vector<double>{3, 12}));
  EXPECT_EQ(outputs[1].to_doubles(), (std::vector<double>{2, 2}));
  EXPECT_EQ(outputs[2].to_doubles(), (std::vector<double>{1.5, 3}));
  EXPECT_EQ(outputs[3].to_doubles(), (std::vector<double>{0.5, 0.5}));
}

// Numbers take the type of the value beside them.
TEST(Expression, KeepsTypes) {
  Graph graph;
  const Expression x = graph.add_input(InputRole::input, "x", {DataType::bf16, {3}});
  const Expression count = graph.add_input(InputRole::input, "count", {DataType::int64, {}});
  EXPECT_EQ((1 + x * 3)->data_type(), DataType::bf16);
  EXPECT_EQ((count + 1)->data_type(), DataType::int64);
}

}  // namespace
}  // namespace tessera::testing
