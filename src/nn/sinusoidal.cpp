#include <cmath>

#include "tessera/base/error.h"
#include "tessera/nn/attention_parts.h"

namespace tessera::nn {

ops::Expression sinusoidal_positions(Value* places, int64_t width) {
  require(width >= 4 && width % 2 == 0, ErrorCode::invalid_argument,
          "sinusoidal positions of {} numbers: they are an even number of at least 4", width);
  const int64_t half = width / 2;
  Tensor frequencies(DataType::fp32, {1, half});
  for (int64_t i = 0; i < half; ++i)
    frequencies.set(i, std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half - 1)));
  Value* angles = ops::multiply(ops::reshape(ops::cast(places, DataType::fp32), {places->shape()[0], 1}),
                                ops::constant(places->graph(), std::move(frequencies)));
  return ops::concat({ops::sin(angles), ops::cos(angles)}, 1);
}

}  // namespace tessera::nn
