// Synthetic contents for the inputs of a test.
#pragma once

#include "tessera/base/tensor.h"

namespace tessera::testing {

// Uniform in [low, high] as far as the type goes; whole numbers for integer types, 0 and 1 for booleans.
Tensor random_tensor(DataType type, const Shape& shape, double low, double high, uint64_t seed);

}  // namespace tessera::testing
