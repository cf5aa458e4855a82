#include "tasks/packed_rows.h"

#include "tessera/nn/layers.h"
#include "tessera/ops/functions.h"

namespace tessera::tasks {

PackedRows packed_rows(Value* lengths, int64_t tokens) {
  const SymbolicShape& shape = lengths->shape();  // [batch, texts]
  Graph& graph = lengths->graph();
  Value* ends = ops::cumulative_sum(lengths, {.axis = 1});
  Value* total = ops::reduce_sum(lengths, {.axes = {1}});
  // [batch, tokens, texts]: whether a text ends before a token.
  Value* places = ops::iota(graph, {1, tokens, 1}, 1, DataType::int32);
  Value* text_ends = ops::reshape(ends, {shape[0], 1, shape[1]});
  Value* is_over = ops::greater_equal(places, text_ends);
  Value* none = ops::constant_like(text_ends, 0);
  Value* begin = ops::reduce_max(ops::select(is_over, text_ends, none), {.axes = {2}});  // of its text

  Value* last = ops::constant_like(ends, static_cast<double>(tokens - 1));
  Value* row =
      ops::multiply(ops::iota(graph, {shape[0], 1}, 0, DataType::int32), static_cast<double>(tokens));
  return {.lengths = total,
          .shown = nn::within_lengths(total, tokens),
          .texts = ops::reduce_sum(ops::cast(is_over, DataType::int32), {.axes = {2}}),
          .positions = ops::subtract(ops::iota(graph, {1, tokens}, 1, DataType::int32), begin),
          .firsts = ops::add(ops::minimum(ops::subtract(ends, lengths), last), row),
          .has_text = ops::cast(ops::greater(lengths, ops::constant_like(lengths, 0)), DataType::fp32)};
}

}  // namespace tessera::tasks
