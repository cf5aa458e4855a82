// Lengths of keys beside a bias of minus infinity, which hides the same.
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/ops/dropout_attention.h"
#include "tessera/passes/differentiate.h"

#include "support/compare.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

constexpr int64_t kBatch = 3, kHeads = 2, kQueries = 4, kKeys = 6;
const std::vector<int32_t> kLengths{4, 1, 6};

enum class HiddenBy { lengths, bias };

// y, log_sum and the gradients of q, k and v, of a loss that reads both results.
std::vector<Tensor> results_of(HiddenBy hidden_by, bool causal, double dropout) {
  Graph graph;
  std::vector<Tensor> inputs;
  const auto input = [&](const Shape& shape) {
    inputs.push_back(random_tensor(DataType::fp64, shape, -1, 1, 5 + inputs.size()));
    return graph.add_input(InputRole::input, "x" + std::to_string(inputs.size()),
                           {DataType::fp64, to_symbolic(shape)});
  };
  Value* q = input({kBatch, kHeads, kQueries, 5});
  Value* k = input({kBatch, kHeads, kKeys, 5});
  Value* v = input({kBatch, kHeads, kKeys, 3});
  ops::AttentionOptions options{.causal = causal};
  if (hidden_by == HiddenBy::lengths) {
    options.key_lengths = ops::constant(graph, Tensor::from<int32_t>({kBatch}, kLengths));
  } else {
    Tensor bias(DataType::fp64, {kBatch, 1, kQueries, kKeys});
    for (int64_t i = 0; i < bias.size(); ++i) {
      if (i % kKeys >= kLengths[static_cast<size_t>(i / (kQueries * kKeys))])
        bias.set(i, -std::numeric_limits<double>::infinity());
    }
    options.bias = ops::constant(graph, bias);
  }
  const ops::AttentionDropout drops{
      .rate = dropout, .counter = ops::constant(graph, Tensor::from<int64_t>({2}, {7, 3})), .stream = 1};
  const ops::Attention attention = ops::dropout_attention(q, k, v, drops, options);
  const auto weighted = [&](Value* result) {
    return ops::reduce_sum(ops::multiply(result, input(result->type().static_shape())), {});
  };
  Value* loss = ops::add(weighted(attention.y), weighted(attention.log_sum));
  const std::vector<Value*> gradients = differentiate(graph, loss, std::vector{q, k, v});
  for (Value* result : {attention.y, attention.log_sum, gradients[0], gradients[1], gradients[2]})
    graph.add_output("r" + std::to_string(graph.outputs().size()), result);
  return run_reference(graph, inputs).outputs;
}

TEST(KeyLengths, HideWhatABiasOfMinusInfinityHides) {
  for (const bool causal : {false, true}) {
    for (const double dropout : {0.0, 0.3}) {
      const std::vector<Tensor> lengths = results_of(HiddenBy::lengths, causal, dropout);
      const std::vector<Tensor> bias = results_of(HiddenBy::bias, causal, dropout);
      for (size_t i = 0; i < bias.size(); ++i) {
        SCOPED_TRACE(fmt::format("causal {}, dropout {}, result {}", causal, dropout, i));
        expect_close(lengths[i], bias[i], {.absolute = 1e-13, .relative = 1e-13});
      }
    }
  }
}

TEST(KeyLengths, StandWithoutABias) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph g(input %q: fp32[2, 1, 3, 4], input %k: fp32[2, 1, 5, 4], input %lengths: int32[2]) {
      %y, %log_sum = attention(%q, %k, %k, _, %lengths) {scale = 0.5}
      output y = %y
    })");
  const Node& node = *graph->nodes().front();
  EXPECT_EQ(node.operand(3), nullptr);
  EXPECT_EQ(node.operand(4), graph->find("lengths"));
  EXPECT_NE(print(*graph).find("attention(%q, %k, %k, _, %lengths)"), std::string::npos);
}

TEST(KeyLengths, AreOneNumberForEachOfTheBatch) {
  Graph graph;
  const auto input = [&](const std::string& name, DataType type, const Shape& shape) {
    return graph.add_input(InputRole::input, name, {type, to_symbolic(shape)});
  };
  Value* q = input("q", DataType::fp32, {2, 3, 4, 5});
  Value* many = input("many", DataType::int32, {6});
  EXPECT_ERROR(ops::attention(q, q, q, {.key_lengths = many}), ErrorCode::invalid_graph,
               "key_lengths must have a number for each of the batch");
  Value* real = input("real", DataType::fp32, {2});
  EXPECT_ERROR(ops::attention(q, q, q, {.key_lengths = real}), ErrorCode::invalid_graph,
               "'key_lengths' may not be fp32");
}

}  // namespace
}  // namespace tessera::testing
