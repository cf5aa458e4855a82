#include "tessera/passes/batch_norm_expression.h"

namespace tessera {

ops::ReduceOptions over_all_but_channels(const Value* x) {
  ops::ReduceOptions over;
  for (int64_t axis = 0; axis + 1 < x->type().rank(); ++axis) over.axes.push_back(axis);
  return over;
}

Value* variance_of_means(Value* mean_of_squares, Value* mean) {
  Value* spread = ops::subtract(mean_of_squares, ops::square(mean));
  return ops::maximum(spread, ops::constant_like(spread, 0));
}

Value* normalise_channels(Value* x, Value* mean, Value* variance, Value* scale, Value* bias, double epsilon) {
  Value* factor = ops::multiply(ops::rsqrt(ops::add(variance, epsilon)), scale);
  const auto along = [&](Value* channels) { return ops::broadcast_to(channels, x->shape()); };
  Value* centred = ops::subtract(ops::cast(x, mean->data_type()), along(mean));
  return ops::cast(ops::add(ops::multiply(centred, along(factor)), along(bias)), x->data_type());
}

}  // namespace tessera
