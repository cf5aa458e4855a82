#include <limits>

#include <gtest/gtest.h>

#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "ops/examples.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

TEST(Gather, ReplacesTheAxisByTheIndices) {
  const Tensor table = Tensor::from<float>({2, 3}, {0, 1, 2, 10, 11, 12});
  const Tensor indices = Tensor::from<int32_t>({2, 1}, {2, 0});
  const Tensor rows = run_operator("gather", {table, indices}, {{"axis", 1}})[0];
  EXPECT_TRUE(rows.identical(Tensor::from<float>({2, 2, 1}, {2, 0, 12, 10})));
}

TEST(Gather, RefusesIndicesOutside) {
  const Tensor table(DataType::fp32, {4, 2});
  EXPECT_ERROR(run_operator("gather", {table, Tensor::from<int32_t>({2}, {1, 4})}),
               ErrorCode::invalid_argument, "gather", "index 4", "element 1", "[0, 4)");
  EXPECT_ERROR(run_operator("gather", {table, Tensor::from<int64_t>({1}, {int64_t{-1}})}),
               ErrorCode::invalid_argument, "index -1", "[0, 4)");
}

TEST(ScatterAdd, AddsEqualIndices) {
  const Tensor indices = Tensor::from<int64_t>({3}, {2, 0, 2});
  const Tensor updates = Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor rows = run_operator("scatter_add", {indices, updates}, {{"extent", SymbolicShape{3}}})[0];
  EXPECT_TRUE(rows.identical(Tensor::from<float>({3, 2}, {3, 4, 0, 0, 6, 8})));
  EXPECT_ERROR(run_operator("scatter_add", {indices, updates}, {{"extent", SymbolicShape{2}}}),
               ErrorCode::invalid_argument, "scatter_add", "index 2", "[0, 2)");
}

TEST(CombineRows, KeepsTheFirstOfEquals) {
  const Tensor indices = Tensor::from<int32_t>({5}, {7, 2, 7, 0, 7});
  const Tensor rows = Tensor::from<float>({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const std::vector<Tensor> result = run_operator("combine_rows", {indices, rows});
  EXPECT_TRUE(result[0].identical(Tensor::from<int32_t>({5}, {7, 2, -1, 0, -1})));
  EXPECT_TRUE(result[1].identical(Tensor::from<float>({5, 2}, {15, 18, 3, 4, 0, 0, 7, 8, 0, 0})));
  EXPECT_ERROR(run_operator("combine_rows", {indices, Tensor(DataType::fp32, {4, 2})}),
               ErrorCode::invalid_graph, "each of the 5 indices needs a row", "[4, 2]");
}

TEST(SetRows, LeavesNegativeIndicesOutAndTakesTheLastOfEquals) {
  const Tensor table = Tensor::from<float>({3, 1}, {1, 2, 3});
  const Tensor rows = Tensor::from<float>({4, 1}, {10, 20, 30, 40});
  const auto set = [&](std::vector<int64_t> indices) {
    return run_operator("set_rows", {table, Tensor::from<int64_t>({4}, indices), rows})[0];
  };
  EXPECT_TRUE(set({2, -1, 2, 0}).identical(Tensor::from<float>({3, 1}, {40, 2, 30})));
  EXPECT_ERROR(set({0, 3, 1, 2}), ErrorCode::invalid_argument, "set_rows", "index 3 at place 1", "[0, 3)");
  EXPECT_ERROR(run_operator("set_rows", {table, Tensor::from<int64_t>({1}, {int64_t{0}}), rows}),
               ErrorCode::invalid_graph, "the rows must be [1, 1], got [4, 1]");
}

// An embedding's gradient on a symbolic batch and vocabulary.
TEST(Gather, GradientIsAScatterOfAnyAxis) {
  Graph graph;
  Value* table = graph.add_input(InputRole::input, "table", {DataType::fp32, {2, 3}});
  Value* indices = graph.add_input(InputRole::input, "indices", {DataType::int32, {4}});
  const std::vector<Value*> sources{table};
  Value* loss = ops::reduce_sum(ops::gather(table, indices, 1));
  graph.add_output("gradient", differentiate(graph, loss, sources)[0]);
  const auto result = run_reference(
      graph, std::vector{Tensor(DataType::fp32, {2, 3}), Tensor::from<int32_t>({4}, {0, 2, 2, 2})});
  EXPECT_TRUE(result.outputs[0].identical(Tensor::from<float>({2, 3}, {1, 0, 3, 1, 0, 3})));
}

TEST(OneHot, IsZeroOutsideTheDepth) {
  const Tensor rows = run_operator("one_hot", {Tensor::from<int64_t>({3}, {1, -100, 2})}, {{"depth", 2}})[0];
  EXPECT_TRUE(rows.identical(Tensor::from<float>({3, 2}, {0, 1, 0, 0, 0, 0})));
}

TEST(TopK, TakesTheFirstOfEquals) {
  const Tensor x = Tensor::from<float>({2, 4}, {3, 7, 7, 1, -1, -1, -2, -1});
  const std::vector<Tensor> result = run_operator("top_k", {x}, {{"k", 3}});
  EXPECT_TRUE(result[0].identical(Tensor::from<float>({2, 3}, {7, 7, 3, -1, -1, -1})));
  EXPECT_TRUE(result[1].identical(Tensor::from<int32_t>({2, 3}, {1, 2, 0, 0, 1, 3})));
}

TEST(TopK, IsExactForIntegersAndShowsNan) {
  const int64_t large = int64_t{1} << 60;
  const std::vector<Tensor> integers =
      run_operator("top_k", {Tensor::from<int64_t>({3}, {large, large + 1, large - 1})}, {{"k", 1}});
  EXPECT_EQ(integers[1].at(0), 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(run_operator("top_k", {Tensor::from<float>({3}, {1, nan, 2})}, {{"k", 2}})[1].to_doubles(),
            (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace tessera::testing
