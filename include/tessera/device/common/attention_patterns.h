// attention and its gradient with the transposes around them, for kernels that read heads wherever they lie.
// Layers keep the heads of a token side by side, [batch, tokens, heads, width], often those of queries, keys
// and values in one product.
#pragma once

#include <functional>

#include "tessera/graph/graph.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera::backend {

// Whether the device's kernel takes a node of attention, or of its gradient, wherever its operands lie.
using TakesAttention = std::function<bool(const Node& node)>;

// Of attention and its gradient, with dropout or without.
bool is_attention_gradient(const Node& attention);
const Value* bias_of_attention(const Node& attention);  // null: there is none
const Value* key_lengths_of_attention(const Node& attention);

// Each head's row of a token begins at a multiple of so many bytes.
inline constexpr int64_t kAttentionRowAlignment = 16;

// "attention" and "attention_gradient", and the same with dropout, gradients to be looked for first: with
// transposes, reshapes and splits before the operands, whoever else reads them, and with transposes, reshapes
// and concatenations that alone read the results. All that moves stays in the body; kernels read where things
// lie by view_in_input() and view_in_output() (moved_view.h). Where the result of the forward half is
// transposed, its gradient reads that. The gradient takes in attention_bias_gradient of the same operands
// too, where the bias has a number for each score and the kernel makes that as well (`takes_bias_gradient`;
// empty: none does).
FusionPattern attention_gradient_pattern(TakesAttention takes,
                                         const TakesAttention& takes_bias_gradient = {});
FusionPattern attention_pattern(TakesAttention takes);
FusionPattern dropout_attention_gradient_pattern(TakesAttention takes);
FusionPattern dropout_attention_pattern(TakesAttention takes);

}  // namespace tessera::backend
