#include "tessera/nn/relative_attention.h"

#include <cmath>

#include "tessera/base/error.h"

namespace tessera::nn {
namespace {

// q + bias meets the positions, which are the same for all texts: one product a head over the queries of all
// of them. [heads, N, queries, keys]
Value* by_distance(Value* q, Value* bias, Value* positions) {
  const SymbolicShape& s = q->shape();
  Value* rows = ops::reshape(ops::transpose(ops::add(q, bias), {1, 0, 2, 3}), {s[1], s[0] * s[2], s[3]});
  return ops::reshape(ops::matmul(rows, positions, {.transpose_b = true}),
                      {s[1], s[0], s[2], positions->shape()[1]});
}

}  // namespace

ops::Expression relative_positions(Graph& graph, int64_t keys, int64_t width, int64_t farthest) {
  require(width >= 2 && width % 2 == 0, ErrorCode::invalid_argument,
          "relative positions of {} numbers: they are an even number", width);
  const int64_t half = width / 2;
  Tensor frequencies(DataType::fp32, {1, half});
  for (int64_t i = 0; i < half; ++i)
    frequencies.set(i, std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
  Value* distances =
      ops::subtract(static_cast<double>(keys - 1), ops::iota(graph, {keys, 1}, 0, DataType::fp32));
  if (farthest > 0) {
    Value* limit = ops::constant_like(distances, static_cast<double>(farthest));
    distances = ops::minimum(distances, limit);
  }
  Value* angles = ops::multiply(distances, ops::constant(graph, std::move(frequencies)));
  return ops::concat({ops::sin(angles), ops::cos(angles)}, 1);
}

// With a column of zeros before the others, row i of the padded matrix begins i + 1 elements later than row i
// of a matrix of that many keys; without the first `queries` elements each row has moved by its own distance.
ops::Expression relative_shift(Value* x) {
  const SymbolicShape& s = x->shape();
  Value* padded = ops::reshape(ops::pad(x, {0, 0, 0, 1}, {0, 0, 0, 0}), {s[0], s[1], s[3] + 1, s[2]});
  Value* moved =
      ops::slice(padded, {0, 0, 1, 0}, {ops::kWholeAxis, ops::kWholeAxis, ops::kWholeAxis, ops::kWholeAxis});
  return ops::reshape(moved, s);
}

ops::Expression relative_attention(const RelativeAttentionOperands& operands) {
  const SymbolicShape& s = operands.q->shape();
  const double scale = 1 / std::sqrt(static_cast<double>(s[3].value()));
  const auto of_head = [&](Value* bias) { return ops::reshape(bias, {s[1], 1, s[3]}); };
  Value* places =
      by_distance(operands.q, of_head(operands.position_bias), ops::multiply(operands.positions, scale));
  const auto exchanged = [](Value* x) { return ops::transpose(x, {1, 0, 2, 3}); };
  Value* bias = ops::add(relative_shift(places), exchanged(operands.hidden));
  return ops::attention(ops::add(operands.q, of_head(operands.content_bias)), operands.k, operands.v,
                        {.scale = scale, .bias = exchanged(bias)})
      .y;
}

}  // namespace tessera::nn
