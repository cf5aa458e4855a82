// What examples and golden values do not say of rotary positions: which numbers go together, and refusals.
#include "tessera/ops/rotary_embedding.h"

#include <array>

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/examples.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/tolerance.h"

namespace tessera::testing {
namespace {

Value* input(Graph& graph, DataType type, SymbolicShape shape) {
  return graph.add_input(InputRole::input, "x" + std::to_string(graph.inputs().size()),
                         {type, std::move(shape)});
}

// Of one token by quarters of a turn, and back.
TEST(RotaryEmbedding, TurnsPairs) {
  const auto rotated = [](const ops::RotaryOptions& options) {
    Graph graph;
    Value* x = input(graph, DataType::fp32, {1, 1, 4});
    Value* cosines = input(graph, DataType::fp32, {1, 2});
    Value* sines = input(graph, DataType::fp32, {1, 2});
    graph.add_output("y", ops::rotary_embedding(x, cosines, sines, options));
    const std::array<Tensor, 3> tensors{Tensor::from<float>({1, 1, 4}, {1, 2, 3, 4}),
                                        Tensor::from<float>({1, 2}, {0, 1}),
                                        Tensor::from<float>({1, 2}, {1, 0})};
    return run_reference(graph, tensors).outputs[0].to_doubles();
  };
  EXPECT_EQ(rotated({}), (std::vector<double>{-3, 2, 1, 4}));
  EXPECT_EQ(rotated({.inverse = true}), (std::vector<double>{3, 2, -1, 4}));
  EXPECT_EQ(rotated({.interleaved = true}), (std::vector<double>{-2, 1, 3, 4}));
  EXPECT_EQ(rotated({.interleaved = true, .inverse = true}), (std::vector<double>{2, -1, 3, 4}));
}

// What files are written with in its place.
TEST(RotaryEmbedding, IsWhatItDecomposesInto) {
  const OperatorSchema& schema = OperatorRegistry::instance().get("rotary_embedding");
  for (size_t i = 0; i < schema.examples.size(); ++i) {
    for (const DataType type : {DataType::fp64, DataType::fp32, DataType::bf16}) {
      const auto example = make_example(schema, i, type);
      ASSERT_TRUE(example.has_value());
      SCOPED_TRACE(example->label);
      const Tensor expected = run_reference(*example->graph, example->tensors).outputs[0];
      Graph& graph = *example->graph;
      graph.erase_outputs();
      graph.add_output("y", schema.decompose(*example->node, example->inputs).at(0));
      const double largest = 4;  // two terms of at most 2
      expect_close(run_reference(graph, example->tensors).outputs[0], expected,
                   tolerance_for(OperatorClass::contraction, type, {.terms = 2, .magnitude = largest}),
                   "in parts");
    }
  }
}

TEST(RotaryEmbedding, RefusesWhatDoesNotBelongTogether) {
  Graph graph;
  const Dimension tokens = Dimension::symbol("tokens");
  Value* x = input(graph, DataType::bf16, {2, tokens, 3, 8});
  Value* angles = input(graph, DataType::fp32, {tokens, 4});
  EXPECT_EQ(ops::rotary_embedding(x, angles, angles)->type(), x->type());
  Value* for_each = input(graph, DataType::fp32, {2, tokens, 4});
  EXPECT_EQ(ops::rotary_embedding(x, for_each, for_each)->type(), x->type());
  const auto expect = [&](Value* operand, Value* cosines, Value* sines, const ops::RotaryOptions& options,
                          const std::string& rule) {
    EXPECT_ERROR(ops::rotary_embedding(operand, cosines, sines, options), ErrorCode::invalid_graph, rule);
  };
  expect(x, angles, angles, {.axis = 3}, "axis must be one before the last of x");
  expect(x, angles, angles, {.axis = 2}, "cosines must be [3, 4], got [tokens, 4]");
  expect(x, for_each, for_each, {.axis = 0}, "cosines must be [2, 4], got [2, tokens, 4]");
  expect(x, angles, for_each, {}, "sines must be as cosines");
  expect(input(graph, DataType::fp32, {tokens, 1, 7}), angles, angles, {},
         "an even number of elements, got 7");
  Value* wide = input(graph, DataType::fp64, {tokens, 4});
  expect(x, wide, wide, {}, "beside an x of bf16 cosines and sines must be fp32");
}

}  // namespace
}  // namespace tessera::testing
