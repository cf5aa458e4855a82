// Attention that knows of positions only how far a key stands before a query (Dai et al., "Transformer-XL",
// 2019, arXiv:1901.02860, section 3.3), so that keys of an earlier segment can be among them.
#pragma once

#include <cstdint>

#include "tessera/nn/context.h"
#include "tessera/ops/expression.h"

namespace tessera::nn {

// The sines of distance * 10000^(-2i / width) and then their cosines, of the distances keys - 1, ..., 1, 0:
// fp32 [keys, width]. Keys farther than `farthest` are as far as that; 0: none is. Throws
// Error(invalid_argument) for an odd width.
ops::Expression relative_positions(Graph& graph, int64_t keys, int64_t width, int64_t farthest = 0);

// From columns by distance to columns by key: x [N, heads, queries, keys], whose column p is of the distance
// keys - 1 - p. In the result column j is that of the distance of key j to query i, of which queries are the
// last of the keys: keys - queries + i - j. Keys after a query have numbers that mean nothing.
ops::Expression relative_shift(Value* x);

struct RelativeAttentionOperands {
  Value* q;              // [N, heads, queries, width]
  Value* k;              // [N, heads, keys, width]; the queries are of the last of them
  Value* v;              // as k
  Value* positions;      // [heads, keys, width], by distance as relative_positions(), projected
  Value* content_bias;   // [heads, width], added to queries that meet keys
  Value* position_bias;  // [heads, width], added to queries that meet positions
  Value* hidden;         // fp32 [N or 1, 1, queries, keys], added to scores
};
// softmax(((q + content_bias) k + shifted (q + position_bias) positions) / sqrt(width) + hidden) v: [N,
// heads, queries, width].
ops::Expression relative_attention(const RelativeAttentionOperands& operands);

}  // namespace tessera::nn
