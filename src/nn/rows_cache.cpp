#include "tessera/nn/attention_parts.h"

namespace tessera::nn {
RowsCache::RowsCache(Value* place, Value* parents, int64_t capacity)
    : place_(place), parents_(parents), capacity_(capacity) {
  Value* seen = ops::add(place, ops::constant_like(place, 1));
  key_lengths_ = ops::broadcast_to(seen, {parents->shape()[0]});
  Value* keys = ops::iota(place->graph(), {capacity}, 0, DataType::int32);
  here_ = ops::reshape(ops::equal(keys, place), {1, 1, capacity, 1});
}

// The state with what x [rows, heads, 1, width] has for this pass's place.
Value* RowsCache::keep(Context& context, const std::string& name, Value* x) const {
  const SymbolicShape& s = x->shape();
  const Shape shape{s[0].value(), s[1].value(), capacity_, s[3].value()};
  Value* state = context.state({.name = name,
                                .shape = shape,
                                .initializer = zeros(),
                                .data_type = context.kept_type(),
                                .advances = true});
  Value* next = ops::select(here_, ops::cast(x, context.kept_type()), ops::gather(state, parents_));
  context.update(state, next);
  return ops::cast(next, x->data_type());
}

ops::Expression RowsCache::attend(Context& context, Value* q, Value* k, Value* v) const {
  return ops::attention(q, keep(context, "keys", k), keep(context, "values", v),
                        {.key_lengths = key_lengths_})
      .y;
}

}  // namespace tessera::nn
