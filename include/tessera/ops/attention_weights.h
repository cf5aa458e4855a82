// Attention's weights by simpler operators: for the gradient of its bias, and for devices and problems that
// have no kernel for the whole.
#pragma once

#include "tessera/ops/dropout_attention.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {

// Of a node of attention or of its gradient, with or without dropout, and what stands in the place of its
// inputs; `rest` is the number of the first operand that is counter or bias.
AttentionOptions attention_options(const Node& node, const std::vector<Value*>& inputs, size_t rest);
AttentionDropout attention_dropout(const Node& node, const std::vector<Value*>& inputs, size_t rest);

// q k^T in fp32 (fp64 of fp64), [batch, heads, queries, keys]. To a head of keys the queries of all heads
// that share it are as many more rows, here and below, so that no key is repeated.
Value* attention_products(Value* q, Value* k);
// Sums of the rows of v, [batch, key heads, keys, width], by the weights of each query: [batch, heads,
// queries, width].
Value* attention_sums(Value* weights, Value* v);
// Sums of rows [batch, heads, queries, width] by the weights that each key has in them, over all heads that
// share it: [batch, key heads, keys, width], where `keys` has as many heads.
Value* attention_key_sums(Value* weights, Value* rows, const Value* keys);
// Scaled and biased; where a query does not see a key, so low that the exponential is 0.
Value* attention_scores(Value* products, const AttentionOptions& options);
// exp(scores - log_sum): what softmax makes of the scores.
Value* attention_weights(Value* products, Value* log_sum, const AttentionOptions& options);
// Numbers for each weight, [batch, heads, queries, keys], with the dropout of the weights; at rate 0 the
// same.
Value* attention_dropped(Value* x, const AttentionDropout& dropout);

}  // namespace tessera::ops
