// Messages of broken shape rules: they name the node, the operator, the input types and the rule.
#include <limits>

#include <gtest/gtest.h>

#include "tessera/ops/functions.h"

#include "ops/examples.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

class ShapeRule : public ::testing::Test {
 protected:
  Value* input(const SymbolicShape& shape, DataType type = DataType::fp32) {
    return graph_.add_input(InputRole::input, "x" + std::to_string(graph_.inputs().size()), {type, shape});
  }
  Node* node(const std::string& name, const std::vector<Value*>& inputs, const Attributes& attributes = {}) {
    return graph_.add_node(name, inputs, attributes, "my_node");
  }
  Graph graph_;
};

TEST_F(ShapeRule, Broadcast) {
  EXPECT_ERROR(node("add", {input({2, 3}), input({4})}), ErrorCode::invalid_graph, "my_node", "add",
               "fp32[2, 3]", "fp32[4]", "do not broadcast");
  EXPECT_ERROR(node("add", {input({Dimension::symbol("n")}), input({4})}), ErrorCode::invalid_graph, "n",
               "do not broadcast");
}

TEST_F(ShapeRule, Types) {
  EXPECT_ERROR(node("add", {input({2}), input({2}, DataType::fp16)}), ErrorCode::invalid_graph, "my_node",
               "'b' is fp16", "fp32");
  EXPECT_ERROR(node("exp", {input({2}, DataType::int32)}), ErrorCode::invalid_graph, "exp",
               "may not be int32");
  EXPECT_ERROR(node("select", {input({2}), input({2}), input({2})}), ErrorCode::invalid_graph, "condition",
               "fp32");
}

TEST_F(ShapeRule, Attributes) {
  EXPECT_ERROR(node("cast", {input({2})}), ErrorCode::invalid_graph, "attribute 'type' is required");
  EXPECT_ERROR(node("leaky_relu", {input({2})}, {{"slop", 0.1}}), ErrorCode::invalid_graph, "slop",
               "did you mean 'slope'");
  EXPECT_ERROR(node("dropout", {input({2}), input({2}, DataType::int64)}, {{"rate", 1.0}, {"stream", 0}}),
               ErrorCode::invalid_graph, "rate", "[0, 1)");
  EXPECT_ERROR(
      node("random_uniform", {input({3}, DataType::int64)}, {{"shape", SymbolicShape{2}}, {"stream", 0}}),
      ErrorCode::invalid_graph, "counter must be [2]");
}

TEST_F(ShapeRule, Movement) {
  Value* x = input({2, 3});
  EXPECT_ERROR(node("reshape", {x}, {{"shape", SymbolicShape{4}}}), ErrorCode::invalid_graph, "my_node",
               "fp32[2, 3]", "[4]", "6");
  EXPECT_ERROR(node("broadcast_to", {x}, {{"shape", SymbolicShape{2, 6}}}), ErrorCode::invalid_graph,
               "[2, 6]");
  EXPECT_ERROR(node("transpose", {x}, {{"permutation", {0, 0}}}), ErrorCode::invalid_graph, "once");
  EXPECT_ERROR(node("transpose", {x}, {{"permutation", std::vector<int64_t>{1}}}), ErrorCode::invalid_graph,
               "1 axes of 2");
  EXPECT_ERROR(node("concat", {x, input({2, 4})}, {{"axis", 0}}), ErrorCode::invalid_graph, "[2, 4]",
               "outside axis 0");
  EXPECT_ERROR(node("concat", {x}, {{"axis", 2}}), ErrorCode::invalid_graph, "axis 2", "rank 2");
  EXPECT_ERROR(node("split", {x}, {{"sizes", {1, 3}}, {"axis", 1}}), ErrorCode::invalid_graph,
               "extent 3 of axis 1", "add up to 4");
  EXPECT_ERROR(node("slice", {x}, {{"starts", {0, 0}}, {"limits", {1, 1}}, {"strides", {1, 0}}}),
               ErrorCode::invalid_graph, "strides must be positive");
  EXPECT_ERROR(node("pad", {x}, {{"low", {-2, 0}}, {"high", {-1, 0}}, {"interior", {0, 0}}}),
               ErrorCode::invalid_graph, "axis 0", "cropped");
  Value* symbolic = input({Dimension::symbol("n")});
  const Attributes crossed{{"starts", std::vector<int64_t>{-2}},
                           {"limits", std::vector<int64_t>{5}},
                           {"strides", std::vector<int64_t>{1}}};
  EXPECT_ERROR(node("slice", {symbolic}, crossed), ErrorCode::invalid_graph, "axis 0 is symbolic");
}

// Numbers near 2^63 are text like any other: no sum or product of them may wrap around.
TEST_F(ShapeRule, NumbersBeyondWhatTensorsHave) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  Value* image = input({1, 8, 8, 1});
  Value* weight = input({1, 3, 3, 1});
  using List = std::vector<int64_t>;
  const auto windows = [&](List strides, List low, List dilations) {
    return Attributes{{"strides", std::move(strides)},
                      {"padding_low", std::move(low)},
                      {"padding_high", List{0, 0}},
                      {"dilations", std::move(dilations)}};
  };
  EXPECT_ERROR(node("convolution", {image, weight}, windows({1, 1}, {0, 0}, {kMost, 1})),
               ErrorCode::invalid_graph, "dilations", "at most 2147483647");
  EXPECT_ERROR(node("convolution", {image, weight}, windows({1, 1}, {kMost, 0}, {1, 1})),
               ErrorCode::invalid_graph, "padding_low", "at most 2147483647");
  EXPECT_ERROR(node("convolution", {image, weight}, windows({kMost, 1}, {0, 0}, {1, 1})),
               ErrorCode::invalid_graph, "strides", "at most 2147483647");
  constexpr int64_t kWindow = 2147483647;
  EXPECT_ERROR(node("average_pool", {image},
                    {{"window", List{kWindow, kWindow}},
                     {"strides", List{1, 1}},
                     {"padding_low", List{kWindow - 1, kWindow - 1}},
                     {"padding_high", List{0, 0}}}),
               ErrorCode::invalid_graph, "larger than any image");
  Value* x = input({2, 3});
  const auto padded = [](List low, List high, List interior) {
    return Attributes{{"low", std::move(low)}, {"high", std::move(high)}, {"interior", std::move(interior)}};
  };
  EXPECT_ERROR(node("pad", {x}, padded({kLeast, 0}, {kMost, 0}, {0, 0})), ErrorCode::invalid_graph, "low");
  EXPECT_ERROR(node("pad", {x}, padded({0, 0}, {0, kMost}, {0, 0})), ErrorCode::invalid_graph, "high");
  EXPECT_ERROR(node("pad", {x}, padded({0, 0}, {0, 0}, {kMost, 0})), ErrorCode::invalid_graph, "interior");
  EXPECT_ERROR(node("pad", {x}, padded({int64_t{1} << 40, 0}, {0, 1 << 20}, {0, 0})),
               ErrorCode::invalid_graph, "128.0 TiB");
  EXPECT_ERROR(
      node("slice", {x}, {{"starts", List{0, 0}}, {"limits", List{2, 3}}, {"strides", List{kMost, 1}}}),
      ErrorCode::invalid_graph, "strides");
  EXPECT_ERROR(node("split", {x}, {{"sizes", List{kMost, kMost, 4}}, {"axis", 1}}), ErrorCode::invalid_graph,
               "64 bits");
  EXPECT_ERROR(node("broadcast_to", {x}, {{"shape", SymbolicShape{int64_t{1} << 46, 2, 3}}}),
               ErrorCode::invalid_graph, "128.0 TiB");
  EXPECT_ERROR(node("iota", {}, {{"shape", SymbolicShape{int64_t{1} << 62, 4}}, {"type", DataType::fp32}}),
               ErrorCode::invalid_graph, "128.0 TiB");
  EXPECT_ERROR(node("count_elements", {}, {{"shape", SymbolicShape{int64_t{1} << 32, int64_t{1} << 32}}}),
               ErrorCode::invalid_graph, "128.0 TiB");
  EXPECT_ERROR(node("one_hot", {input({4}, DataType::int32)}, {{"depth", kMost}}), ErrorCode::invalid_graph,
               "128.0 TiB");
  Value* wide = input({int64_t{1} << 40});
  EXPECT_ERROR(node("concat", std::vector<Value*>(40, wide), {{"axis", 0}}), ErrorCode::invalid_graph,
               "128.0 TiB");
  Value* column = input({1 << 24, 1});
  Value* row = input({1, 1 << 24});
  EXPECT_ERROR(node("matmul", {column, row}), ErrorCode::invalid_graph, "128.0 TiB");
  EXPECT_ERROR(node("add", {column, row}), ErrorCode::invalid_graph, "128.0 TiB");
}

// A stride beyond the axis takes its first element, and no product of it with the axis's own stride is made.
TEST_F(ShapeRule, StridesBeyondTheAxis) {
  Value* x = graph_.add_input(InputRole::input, "x", {DataType::fp32, {3, 4}});
  const Node* slice =
      node("slice", {x}, {{"starts", {1, 1}}, {"limits", {3, 4}}, {"strides", {kMaximumTensorBytes, 2}}});
  const Tensor values = Tensor::from<float>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const std::vector<const Tensor*> arguments{&values};
  EXPECT_TRUE(run_reference(*slice, arguments)[0].identical(Tensor::from<float>({1, 2}, {5, 7})));
}

TEST_F(ShapeRule, Indexing) {
  Value* indices = input({4}, DataType::int32);
  EXPECT_ERROR(node("gather", {input({}), indices}), ErrorCode::invalid_graph, "axis 0", "rank 0");
  EXPECT_ERROR(node("scatter_add", {indices, input({3, 2})}, {{"extent", SymbolicShape{5}}}),
               ErrorCode::invalid_graph, "[3, 2]", "[4]");
  EXPECT_ERROR(node("one_hot", {indices}, {{"depth", 0}}), ErrorCode::invalid_graph, "depth", "0");
  EXPECT_ERROR(node("top_k", {input({2, 3})}, {{"k", 4}}), ErrorCode::invalid_graph, "[1, 3]", "4");
}

TEST_F(ShapeRule, Fused) {
  const auto body = [](bool updates) {
    auto graph = std::make_unique<Graph>("body");
    Value* x = graph->add_input(updates ? InputRole::state : InputRole::input, "x", {DataType::fp32, {2}});
    Value* y = ops::relu(x);
    graph->add_output("y", y);
    if (updates) graph->add_update(x, y);
    return graph;
  };
  const auto fused = [&](const std::vector<Value*>& inputs, std::unique_ptr<Graph> graph) {
    return graph_.add_node("fused", inputs, {{"kind", "cluster"}}, "my_node", std::move(graph));
  };
  Value* x = input({2});
  EXPECT_ERROR(fused({x}, nullptr), ErrorCode::invalid_graph, "my_node", "needs a body");
  EXPECT_ERROR(fused({x, x}, body(false)), ErrorCode::invalid_graph, "1 inputs", "2");
  EXPECT_ERROR(fused({input({3})}, body(false)), ErrorCode::invalid_graph, "fp32[3]", "fp32[2]");
  EXPECT_ERROR(fused({x}, body(true)), ErrorCode::invalid_graph, "updates a state");
  const Node* good = fused({x}, body(false));
  graph_.add_output("y", good->output());
  const std::string text = print(graph_);
  EXPECT_EQ(print(*parse_graph(text)), text);
  const Tensor values = Tensor::from<float>({2}, {-1, 2});
  const std::vector<const Tensor*> arguments{&values};
  EXPECT_TRUE(run_reference(*good, arguments)[0].identical(Tensor::from<float>({2}, {0, 2})));
}

}  // namespace
}  // namespace tessera::testing
