#include "tessera/nn/unpadding.h"

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

namespace tessera::nn {
namespace {

// [A, B, ...] -> [A * B, ...].
Value* joined_places(Value* x) {
  SymbolicShape shape = x->shape();
  shape[1] = shape[0] * shape[1];
  shape.erase(shape.begin());
  return ops::reshape(x, shape);
}

}  // namespace

TokenList::TokenList(Value* lengths, int64_t tokens, int64_t size) : size_(size), lengths_(lengths) {
  require(size > 0, ErrorCode::invalid_argument, "a list of {} tokens", size);
  Graph& graph = lengths->graph();
  const Dimension& rows = lengths->shape()[0];
  const SymbolicShape of_rows{rows, tokens};
  Value* ends = ops::cumulative_sum(lengths, {.axis = 0});
  Value* begins = ops::reshape(ops::subtract(ends, lengths), {rows, 1});
  Value* last = ops::constant_like(lengths, static_cast<double>(size - 1));
  places_ = ops::minimum(ops::add(begins, ops::iota(graph, {1, tokens}, 1, DataType::int32)), last);
  fits_ =
      ops::less_equal(ops::reduce_sum(lengths, {}), ops::constant_like(lengths, static_cast<double>(size)));

  Value* is_token = ops::cast(within_lengths(lengths, tokens), DataType::boolean);
  Value* written = joined_places(ops::select(is_token, places_, ops::constant_like(places_, -1)));
  Value* numbers = ops::iota(graph, written->shape(), 0, DataType::int32);
  Value* none = ops::broadcast_to(ops::constant_like(numbers, 0), {size});
  sources_ = ops::reshape(ops::set_rows(none, written, numbers), {1, size});
}

ops::Expression TokenList::positions() const {
  return to_list(ops::iota(places_->graph(), places_->shape(), 1, DataType::int32));
}

ops::Expression TokenList::to_list(Value* rows) const {
  return ops::gather(joined_places(rows), sources_);
}

ops::Expression TokenList::to_rows(Value* list) const {
  return ops::gather(joined_places(list), places_);
}

}  // namespace tessera::nn
