// Normalization by the root mean square: layer_norm that leaves the mean where it is.
#pragma once

#include "tessera/ops/functions.h"

namespace tessera::ops {

// x / sqrt(mean of x^2 + epsilon) * scale over the last `axes` axes, whose shape scale has (Zhang and
// Sennrich 2019, arXiv:1910.07467). Throws as layer_norm().
Value* rms_norm(Value* x, Value* scale, int64_t axes = 1, double epsilon = 1e-5);

}  // namespace tessera::ops
