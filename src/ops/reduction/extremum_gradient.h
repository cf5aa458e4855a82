// The gradient that the largest and the smallest element have in common.
#pragma once

#include <vector>

#include "tessera/ops/functions.h"

namespace tessera::ops {

// Shares dy evenly among the elements that equal the extremum y (as PyTorch's amax and amin do); y and dy
// have the reduced axes as ones.
inline Value* extremum_gradient(Value* x, Value* y, Value* dy, const std::vector<int64_t>& axes) {
  Value* winner = equal(x, reshape(y, dy->shape()));
  // Ties are counted in fp32 or wider: fp16 ends at 65504.
  const DataType type = x->data_type();
  const DataType wide = is_half(type) ? DataType::fp32 : type;
  Value* winners = reduce_sum(cast(winner, wide), {.axes = axes, .keep_dimensions = true});
  Value* share = cast(divide(cast(dy, wide), winners), type);
  return select(winner, share, constant_like(share, 0));
}

}  // namespace tessera::ops
