// The layer-wise scaling that LARS and LAMB share.
#pragma once

#include "tessera/ops/functions.h"

namespace tessera::optim {

// `ratio` where both norms are positive, else 1.
inline Value* trusted(Value* ratio, Value* weight_norm, Value* direction_norm) {
  Value* zero = ops::constant_like(weight_norm, 0);
  Value* both = ops::logical_and(ops::greater(weight_norm, zero), ops::greater(direction_norm, zero));
  return ops::select(both, ratio, ops::constant_like(ratio, 1));
}

}  // namespace tessera::optim
