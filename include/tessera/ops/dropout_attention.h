// Attention whose weights are dropped: an operator of its own, so that no kernel takes it for one that drops
// none.
#pragma once

#include <cstdint>

#include "tessera/ops/functions.h"

namespace tessera::ops {

// As of dropout() of the weights, [batch, heads, queries, keys].
struct AttentionDropout {
  double rate = 0;           // in (0, 1); 0: nothing is dropped
  Value* counter = nullptr;  // int64 [2]: seed and step
  int64_t stream = 0;
};

// As attention() and its gradient; log_sum is of what nothing was dropped of.
Attention dropout_attention(Value* q, Value* k, Value* v, const AttentionDropout& dropout,
                            const AttentionOptions& options = {});
AttentionGradients dropout_attention_gradient(Value* output_gradient, Value* q, Value* k, Value* v, Value* y,
                                              Value* log_sum, const AttentionDropout& dropout,
                                              const AttentionOptions& options = {});

}  // namespace tessera::ops
