#include "support/random_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tessera/base/random.h"

namespace tessera::testing {

Tensor random_tensor(DataType type, const Shape& shape, double low, double high, uint64_t seed) {
  if (!is_complex(type)) {
    low = std::max(low, traits_of(type).lowest);
    high = std::min(high, traits_of(type).highest);
  }
  const double first = std::ceil(low);
  const double last = std::max(std::floor(high), first);
  const auto number = [&](double unit) {
    if (is_floating(type)) return low + (high - low) * unit;
    if (type == DataType::boolean) return unit < 0.5 ? 0.0 : 1.0;
    return first + std::floor((last - first + 1) * unit);
  };
  const Random random(seed);
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); i += 4) {
    const std::array<float, 4> units = random.uniforms(i / 4);
    for (size_t k = 0; k < std::min<size_t>(4, values.size() - i); ++k) values[i + k] = number(units[k]);
  }
  return Tensor::from_doubles(type, shape, values);
}

}  // namespace tessera::testing
