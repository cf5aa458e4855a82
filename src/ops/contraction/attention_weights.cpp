#include "tessera/ops/attention_weights.h"

#include <limits>

#include "tessera/base/error.h"

#include "ops/contraction/attention_shapes.h"
#include "ops/normalization/normalization.h"

namespace tessera::ops {

namespace {

// Where a query does not see a key. Null: nothing is hidden.
Value* hidden_scores(const Value* products, const AttentionOptions& options) {
  Graph& graph = products->graph();
  const SymbolicShape& shape = products->shape();
  Value* hidden = nullptr;
  if (options.causal) {
    const SymbolicShape pairs{shape[2], shape[3]};
    hidden = greater(iota(graph, pairs, 1, DataType::int32), iota(graph, pairs, 0, DataType::int32));
  }
  if (options.key_lengths != nullptr) {
    Value* keys = iota(graph, {1, 1, 1, shape[3]}, 3, DataType::int32);
    Value* after = greater_equal(keys, reshape(options.key_lengths, {shape[0], 1, 1, 1}));
    hidden = hidden == nullptr ? after : logical_or(hidden, after);
  }
  return hidden;
}

// Rows of each head of queries as those of the heads of keys that see them.
Value* by_key_heads(Value* x, const Value* keys) {
  const SymbolicShape &s = x->shape(), &k = keys->shape();
  if (s[1] == k[1]) return x;
  const std::optional<Dimension> heads = heads_per_key_head(s, k);
  require(heads.has_value(), ErrorCode::invalid_graph,
          "{} heads of queries are no multiple of {} heads of keys", s[1].to_string(), k[1].to_string());
  return reshape(x, {s[0], k[1], *heads * s[2], s[3]});
}

// The same again by heads of queries.
Value* by_query_heads(Value* x, const SymbolicShape& like) {
  const Dimension& width = x->shape()[3];
  return x->shape()[1] == like[1] ? x : reshape(x, {like[0], like[1], like[2], width});
}

}  // namespace

AttentionOptions attention_options(const Node& node, const std::vector<Value*>& inputs, size_t rest) {
  const size_t bias = rest + (drops_weights(node.attributes()) ? 1 : 0);
  const std::vector<Value*> operands = node.operands(inputs);
  const auto optional = [&](size_t number) { return number < operands.size() ? operands[number] : nullptr; };
  return {.scale = node.attributes().real("scale"),
          .causal = node.attributes().boolean("causal"),
          .bias = optional(bias),
          .key_lengths = optional(bias + 1)};
}

AttentionDropout attention_dropout(const Node& node, const std::vector<Value*>& inputs, size_t rest) {
  const Attributes& attributes = node.attributes();
  if (!drops_weights(attributes)) return {};
  return {
      .rate = attributes.real("rate"), .counter = inputs.at(rest), .stream = attributes.integer("stream")};
}

Value* attention_products(Value* q, Value* k) {
  const DataType type = statistics_type(q->data_type());
  Value* products = matmul(by_key_heads(cast(q, type), k), cast(k, type), {.transpose_b = true});
  return by_query_heads(products, q->shape());
}

Value* attention_sums(Value* weights, Value* v) {
  Value* sums = matmul(by_key_heads(weights, v), cast(v, weights->data_type()));
  return by_query_heads(sums, weights->shape());
}

Value* attention_key_sums(Value* weights, Value* rows, const Value* keys) {
  return matmul(by_key_heads(weights, keys), by_key_heads(cast(rows, weights->data_type()), keys),
                {.transpose_a = true});
}

Value* attention_scores(Value* products, const AttentionOptions& options) {
  Value* scores = multiply(products, *options.scale);
  if (options.bias != nullptr) scores = add(scores, cast(options.bias, products->data_type()));
  Value* hidden = hidden_scores(products, options);
  if (hidden == nullptr) return scores;
  return select(hidden, constant_like(products, std::numeric_limits<float>::lowest()), scores);
}

Value* attention_weights(Value* products, Value* log_sum, const AttentionOptions& options) {
  return exp(subtract(attention_scores(products, options), as_column(log_sum)));
}

Value* attention_dropped(Value* x, const AttentionDropout& dropout) {
  return dropout.rate == 0 ? x : ops::dropout(x, dropout.counter, dropout.rate, dropout.stream);
}

}  // namespace tessera::ops
