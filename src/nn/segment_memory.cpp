#include "tessera/nn/segment_memory.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "nn/hidden_scores.h"

namespace tessera::nn {
namespace {

// bool [1, 1, tokens, before + tokens], true where a key stands after the query.
Value* after_query(Graph& graph, int64_t tokens, int64_t before) {
  Value* keys = ops::iota(graph, {1, 1, 1, before + tokens}, 3, DataType::fp32);
  Value* queries = ops::iota(graph, {1, 1, tokens, 1}, 2, DataType::fp32);
  return ops::greater(keys, ops::add(queries, static_cast<double>(before)));
}

}  // namespace

Value* hidden_after(Graph& graph, int64_t tokens) {
  return hidden_scores(after_query(graph, tokens, 0));
}

SegmentMemory::SegmentMemory(Context& context, std::string name, int64_t length, const Segment& segment)
    : name_(std::move(name)), length_(length), segment_(segment) {
  require(length >= 0, ErrorCode::invalid_argument, "a memory of {} tokens", length);
  const Dimension rows = segment.begins->shape()[0];
  const RowState state(context, name_ + "_tokens", {rows});
  Value* none = ops::constant_like(state.value(), 0);
  Value* is_first = ops::not_equal(segment.begins, ops::constant_like(segment.begins, 0));
  Value* kept = ops::select(is_first, none, state.value());
  Value* longer = segment.count == nullptr ? ops::add(kept, static_cast<double>(segment.tokens))
                                           : ops::add(kept, ops::cast(segment.count, DataType::fp32));
  state.update(context, ops::minimum(longer, ops::constant_like(longer, static_cast<double>(length))));
  Value* first = ops::subtract(static_cast<double>(length), ops::reshape(kept, {rows, 1, 1, 1}));
  Value* keys = ops::iota(context.graph(), {1, 1, 1, length + segment.tokens}, 3, DataType::fp32);
  hidden_ = hidden_scores(
      ops::logical_or(ops::less(keys, first), after_query(context.graph(), segment.tokens, length)));
}

Value* SegmentMemory::extend(Context& context, Value* x) const {
  if (length_ == 0) return x;
  const SymbolicShape& shape = x->shape();
  const RowState state(context, name_, {shape[0], length_, shape[2]});
  Value* all = ops::concat({ops::cast(state.value(), x->data_type()), x}, 1);
  Value* next = nullptr;
  if (segment_.count == nullptr) {
    next = ops::slice(all, {0, segment_.tokens, 0}, {ops::kWholeAxis, ops::kWholeAxis, ops::kWholeAxis});
  } else {
    Value* places = ops::iota(context.graph(), {length_}, 0, DataType::int32);
    next = ops::gather(all, ops::add(places, segment_.count), 1);
  }
  state.update(context, next);
  return all;
}

}  // namespace tessera::nn
