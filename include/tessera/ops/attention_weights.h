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

// q k^T in fp32 (fp64 of fp64), [batch, heads, queries, keys].
Value* attention_products(Value* q, Value* k);
// Scaled and biased; where a query does not see a key, so low that the exponential is 0.
Value* attention_scores(Value* products, const AttentionOptions& options);
// exp(scores - log_sum): what softmax makes of the scores.
Value* attention_weights(Value* products, Value* log_sum, const AttentionOptions& options);
// Numbers for each weight, [batch, heads, queries, keys], with the dropout of the weights; at rate 0 the
// same.
Value* attention_dropped(Value* x, const AttentionDropout& dropout);

}  // namespace tessera::ops
