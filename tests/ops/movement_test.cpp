#include <numeric>

#include <gtest/gtest.h>

#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "ops/examples.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using ops::kWholeAxis;
using Integers = std::vector<int64_t>;

constexpr int64_t kLarge = int64_t{1} << 60;  // plus a little: no double holds it

// kLarge, kLarge + 1, ... in row-major order.
Tensor counted(const Shape& shape) {
  Integers values(static_cast<size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), kLarge);
  return Tensor::from<int64_t>(shape, values);
}

Integers offsets(const Tensor& tensor) {
  Integers result;
  for (const int64_t value : tensor.data<int64_t>()) result.push_back(value - kLarge);
  return result;
}

Integers move(const std::string& name, const Tensor& x, const Attributes& attributes) {
  return offsets(run_operator(name, {x}, attributes)[0]);
}

TEST(Movement, Int64IsExact) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(move("transpose", x, {{"permutation", {1, 0}}}), (Integers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(move("reshape", x, {{"shape", SymbolicShape{6}}}), (Integers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(move("broadcast_to", counted({2, 1}), {{"shape", SymbolicShape{2, 2, 2}}}),
            (Integers{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(move("slice", x, {{"starts", {0, -2}}, {"limits", {kWholeAxis, -1}}, {"strides", {1, 1}}}),
            (Integers{1, 4}));
  EXPECT_EQ(offsets(run_operator("concat", {x, counted({2, 1})}, {{"axis", 1}})[0]),
            (Integers{0, 1, 2, 0, 3, 4, 5, 1}));
  const std::vector<Tensor> parts = run_operator("split", {x}, {{"sizes", {1, 2}}, {"axis", -1}});
  EXPECT_EQ(offsets(parts[0]), (Integers{0, 3}));
  EXPECT_EQ(offsets(parts[1]), (Integers{1, 2, 4, 5}));
}

TEST(Pad, AddsCropsAndSpreads) {
  const auto pad = [](Integers low, Integers high, Integers interior) {
    return run_operator("pad", {Tensor::from<float>({3}, {1, 2, 3})},
                        {{"low", low}, {"high", high}, {"interior", interior}, {"value", 9.0}})[0]
        .to_doubles();
  };
  EXPECT_EQ(pad({1}, {2}, {0}), (std::vector<double>{9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(pad({0}, {0}, {2}), (std::vector<double>{1, 9, 9, 2, 9, 9, 3}));
  EXPECT_EQ(pad({-1}, {1}, {0}), (std::vector<double>{2, 3, 9}));
  EXPECT_EQ(pad({-1}, {-1}, {1}), (std::vector<double>{9, 2, 9}));
  EXPECT_EQ(pad({-2}, {-1}, {0}), (std::vector<double>{}));
  EXPECT_EQ(pad({-4}, {4}, {0}), (std::vector<double>{9, 9, 9}));
}

TEST(Slice, ClampsToTheExtent) {
  const auto slice = [](int64_t start, int64_t limit, int64_t stride) {
    return move("slice", counted({5}),
                {{"starts", Integers{start}}, {"limits", Integers{limit}}, {"strides", Integers{stride}}});
  };
  EXPECT_EQ(slice(1, 100, 2), (Integers{1, 3}));
  EXPECT_EQ(slice(-100, 2, 1), (Integers{0, 1}));
  EXPECT_EQ(slice(4, 2, 1), (Integers{}));
  EXPECT_EQ(slice(0, 5, 4), (Integers{0, 4}));
}

// The gradients of movement operators on a symbolic batch, which is how networks use them.
TEST(Movement, GradientsOfASymbolicBatch) {
  Graph graph;
  const Dimension batch = Dimension::symbol("batch");
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp64, {batch, 6}});
  Value* padded = ops::pad(x, {1, 0}, {0, 2}, 0.5, {1, 0});
  Value* cut = ops::slice(padded, {1, 0}, {kWholeAxis, -3});
  const std::vector<Value*> parts = ops::split(cut, {2, 3}, 1);
  Value* joined = ops::concat({parts[1], parts[0], parts[1]}, 1);
  Value* loss = ops::reduce_sum(ops::square(ops::transpose(joined, {1, 0})));
  const std::vector<Value*> sources{x};
  graph.add_output("gradient", differentiate(graph, loss, sources)[0]);
  const auto special = specialize(graph, {{"batch", 3}});
  verify(*special);
  const Tensor input = random_tensor(DataType::fp64, {3, 6}, -1, 1, 1);
  const Tensor gradient = run_reference(*special, std::vector{input}).outputs[0];
  const double copies[] = {1, 1, 2, 2, 2, 0};  // how often each column is in the result
  for (int64_t i = 0; i < input.size(); ++i) {
    EXPECT_DOUBLE_EQ(gradient.at(i), 2 * copies[i % 6] * input.at(i));
  }
}

TEST(Movement, ConcatAndSplitOfSymbolicExtents) {
  Graph graph;
  const Dimension tokens = Dimension::symbol("tokens");
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {2, tokens}});
  Value* one = graph.add_input(InputRole::input, "one", {DataType::fp32, {2, 1}});
  Value* joined = ops::concat({one, x}, -1);
  EXPECT_EQ(joined->shape(), (SymbolicShape{2, tokens + 1}));
  EXPECT_ERROR(ops::split(joined, {1, 4}, 1), ErrorCode::invalid_graph, "split", "tokens + 1", "5");
}

}  // namespace
}  // namespace tessera::testing
