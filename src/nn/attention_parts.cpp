#include "tessera/nn/attention_parts.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/attention_weights.h"

#include "nn/hidden_scores.h"

namespace tessera::nn {
namespace {

// How many heads of queries each head of keys serves.
int64_t group_of(Value* q, Value* k) {
  const int64_t heads = q->shape()[1].value();
  const int64_t key_heads = k->shape()[1].value();
  require(heads % key_heads == 0, ErrorCode::invalid_argument,
          "{} heads of queries are no multiple of {} heads of keys", heads, key_heads);
  return heads / key_heads;
}

}  // namespace

std::vector<Value*> split_heads(Value* x, int64_t parts, int64_t heads) {
  const SymbolicShape& s = x->shape();
  const int64_t width = s[2].value() / (parts * heads);
  Value* by_head = ops::transpose(ops::reshape(x, {s[0], s[1], parts, heads, width}), {2, 0, 3, 1, 4});
  std::vector<Value*> result;
  for (Value* part : ops::split(by_head, std::vector<int64_t>(static_cast<size_t>(parts), 1), 0))
    result.push_back(ops::reshape(part, {s[0], heads, s[1], width}));
  return result;
}

ops::Expression join_heads(Value* x) {
  const SymbolicShape& s = x->shape();
  return ops::reshape(ops::transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

ops::Expression dropout_attention(Context& context, Value* q, Value* k, Value* v, double rate,
                                  ops::AttentionOptions options) {
  if (!context.training() || rate == 0) return ops::attention(q, k, v, options).y;
  if (context.ranks().count == 1) {
    const ops::AttentionDropout dropout{rate, context.random_counter(), context.next_random_stream()};
    return ops::dropout_attention(q, k, v, dropout, options).y;
  }
  // The numbers are those of the rank's rows in the whole batch, which the operator knows nothing of.
  if (!options.scale.has_value()) options.scale = 1 / std::sqrt(static_cast<double>(q->shape()[3].value()));
  Value* weights = ops::softmax(ops::attention_scores(ops::attention_products(q, k), options));
  Value* dropped = dropout(context, weights, rate);
  return ops::cast(ops::attention_sums(dropped, v), q->data_type());
}

ops::Expression causal_attention(Value* q, Value* k, Value* v) {
  return ops::attention(q, k, v, {.causal = true}).y;
}

AttentionCache::AttentionCache(Value* places, int64_t capacity) : places_(places), capacity_(capacity) {
  Graph& graph = places->graph();
  const Dimension& tokens = places->shape()[0];
  Value* keys = ops::iota(graph, {1, capacity}, 1, DataType::int32);
  Value* later = ops::greater(keys, ops::reshape(places, {tokens, 1}));
  hidden_ = ops::reshape(hidden_scores(later), {1, 1, tokens, capacity});
}

// The state with what x [1, heads, tokens, width] has for this pass's places, as [1, heads, capacity, width].
// It lies head by head, so that attention reads it where it lies.
Value* AttentionCache::keep(Context& context, const std::string& name, Value* x) const {
  const int64_t heads = x->shape()[1].value(), tokens = x->shape()[2].value(), width = x->shape()[3].value();
  Value* state = context.state({.name = name,
                                .shape = {heads * capacity_, width},
                                .initializer = zeros(),
                                .data_type = context.kept_type(),
                                .advances = true});
  Value* first_rows = ops::multiply(
      ops::iota(context.graph(), {heads, 1}, 0, DataType::int32),
      ops::constant(context.graph(), Tensor::from<int32_t>({}, {static_cast<int32_t>(capacity_)})));
  Value* places = ops::reshape(places_, {1, tokens});
  Value* rows = ops::add(first_rows, places);
  Value* kept =
      ops::select(ops::less(places, ops::constant_like(places, 0)), ops::constant_like(rows, -1), rows);
  Value* added = ops::cast(ops::reshape(x, {heads * tokens, width}), context.kept_type());
  Value* next = ops::set_rows(state, ops::reshape(kept, {heads * tokens}), added);
  context.update(state, next);
  return ops::reshape(ops::cast(next, x->data_type()), {1, heads, capacity_, width});
}

ops::Expression AttentionCache::attend(Context& context, Value* q, Value* k, Value* v) const {
  const int64_t group = group_of(q, k);
  const SymbolicShape& s = q->shape();
  const int64_t key_heads = k->shape()[1].value(), tokens = s[2].value();
  Value* keys = keep(context, "keys", k);
  Value* values = keep(context, "values", v);
  // The queries that a head of keys serves are as many more tokens to it, so that nothing is repeated.
  Value* queries = ops::reshape(q, {1, key_heads, group * tokens, s[3]});
  Value* hidden = ops::broadcast_to(hidden_, {1, group, tokens, capacity_});
  Value* y =
      ops::attention(queries, keys, values, {.bias = ops::reshape(hidden, {1, 1, group * tokens, capacity_})})
          .y;
  return ops::reshape(y, s);
}

}  // namespace tessera::nn
