// Synthetic contents for the inputs of a test.
#pragma once

#include <cmath>

#include "tessera/base/random.h"
#include "tessera/base/tensor.h"

namespace tessera::testing {

// Uniform in [low, high] as far as the type goes; whole numbers for integer types, 0 and 1 for booleans.
inline Tensor random_tensor(DataType type, const Shape& shape, double low, double high, uint64_t seed) {
  Tensor result(type, shape);
  const Random random(seed);
  if (!is_complex(type)) {
    low = std::max(low, traits_of(type).lowest);
    high = std::min(high, traits_of(type).highest);
  }
  for (int64_t i = 0; i < result.size(); ++i) {
    const double unit = random.uniform(static_cast<uint64_t>(i));
    if (is_floating(type)) {
      result.set(i, low + (high - low) * unit);
    } else if (type == DataType::boolean) {
      result.set(i, unit < 0.5 ? 0 : 1);
    } else {
      const double first = std::ceil(low);
      const double last = std::max(std::floor(high), first);
      result.set(i, first + std::floor((last - first + 1) * unit));
    }
  }
  return result;
}

}  // namespace tessera::testing
