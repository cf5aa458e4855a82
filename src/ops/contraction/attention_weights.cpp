#include "tessera/ops/attention_weights.h"

#include <limits>

#include "ops/contraction/attention_shapes.h"
#include "ops/normalization/normalization.h"

namespace tessera::ops {

AttentionOptions attention_options(const Node& node, const std::vector<Value*>& inputs, size_t rest) {
  const size_t bias = rest + (drops_weights(node.attributes()) ? 1 : 0);
  return {.scale = node.attributes().real("scale"),
          .causal = node.attributes().boolean("causal"),
          .bias = inputs.size() > bias ? inputs[bias] : nullptr};
}

AttentionDropout attention_dropout(const Node& node, const std::vector<Value*>& inputs, size_t rest) {
  const Attributes& attributes = node.attributes();
  if (!drops_weights(attributes)) return {};
  return {
      .rate = attributes.real("rate"), .counter = inputs.at(rest), .stream = attributes.integer("stream")};
}

Value* attention_products(Value* q, Value* k) {
  const DataType type = statistics_type(q->data_type());
  return matmul(cast(q, type), cast(k, type), {.transpose_b = true});
}

Value* attention_scores(Value* products, const AttentionOptions& options) {
  Value* scores = multiply(products, *options.scale);
  if (options.bias != nullptr) scores = add(scores, cast(options.bias, products->data_type()));
  if (!options.causal) return scores;
  const SymbolicShape& shape = products->shape();
  const SymbolicShape pairs{shape[2], shape[3]};
  Value* query = iota(products->graph(), pairs, 0, DataType::int32);
  Value* key = iota(products->graph(), pairs, 1, DataType::int32);
  Value* hidden = constant_like(products, std::numeric_limits<float>::lowest());
  return select(less_equal(key, query), scores, hidden);
}

Value* attention_weights(Value* products, Value* log_sum, const AttentionOptions& options) {
  return exp(subtract(attention_scores(products, options), as_column(log_sum)));
}

Value* attention_dropped(Value* x, const AttentionDropout& dropout) {
  return dropout.rate == 0 ? x : ops::dropout(x, dropout.counter, dropout.rate, dropout.stream);
}

}  // namespace tessera::ops
