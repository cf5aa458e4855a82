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

// Sums of x - s and of its square, where s, the first row, lies near enough to the mean that nothing cancels.
BatchStatistics batch_statistics(Value* x, DataType type) {
  const Shape shape = x->type().static_shape();
  const int64_t channels = shape.back();
  Value* rows = ops::reshape(x, {element_count(shape) / channels, channels});
  Value* first = ops::reshape(ops::slice(rows, {0, 0}, {1, channels}), {channels});
  Value* shift = ops::cast(first, type);
  Value* shifted = ops::subtract(ops::cast(x, type), shift);
  Value* mean_shifted = ops::reduce_mean(shifted, over_all_but_channels(x));
  Value* mean_square = ops::reduce_mean(ops::square(shifted), over_all_but_channels(x));
  return {ops::add(mean_shifted, shift), variance_of_means(mean_square, mean_shifted)};
}

Value* normalise_channels(Value* x, Value* mean, Value* variance, Value* scale, Value* bias, double epsilon) {
  Value* factor = ops::multiply(ops::rsqrt(ops::add(variance, epsilon)), scale);
  const auto along = [&](Value* channels) { return ops::broadcast_to(channels, x->shape()); };
  Value* centred = ops::subtract(ops::cast(x, mean->data_type()), along(mean));
  return ops::cast(ops::add(ops::multiply(centred, along(factor)), along(bias)), x->data_type());
}

}  // namespace tessera
