#include "tessera/nn/initializer.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/random.h"

namespace tessera::nn {
namespace {

template <typename Draw>
Initializer drawn(std::string name, Draw&& draw) {
  return {std::move(name), [draw](Tensor& tensor, uint64_t seed, uint64_t stream) {
            const Random random(seed, stream);
            if (tensor.data_type() != DataType::fp32) {
              for (int64_t i = 0; i < tensor.size(); ++i)
                tensor.set(i, draw(random, static_cast<size_t>(i), tensor.shape()));
              return;
            }
            auto values = tensor.data<float>();
            for (size_t i = 0; i < values.size(); ++i)
              values[i] = static_cast<float>(draw(random, i, tensor.shape()));
          }};
}

double symmetric(const Random& random, size_t index, double bound) {
  return (2.0 * random.uniform(index) - 1.0) * bound;
}

}  // namespace

Fans fans_of(const Shape& shape) {
  if (shape.size() < 2)
    return {static_cast<double>(element_count(shape)), static_cast<double>(element_count(shape))};
  double receptive = 1;
  for (size_t axis = 1; axis + 1 < shape.size(); ++axis) receptive *= static_cast<double>(shape[axis]);
  return {receptive * static_cast<double>(shape.back()), receptive * static_cast<double>(shape.front())};
}

Initializer constant(double value) {
  return {"constant", [value](Tensor& tensor, uint64_t, uint64_t) {
            for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value);
          }};
}
Initializer zeros() {
  return constant(0);
}
Initializer ones() {
  return constant(1);
}

Initializer normal(double deviation, double mean) {
  return drawn("normal", [=](const Random& random, size_t i, const Shape&) {
    return mean + deviation * random.normal(i);
  });
}

Initializer truncated_normal(double deviation) {
  return drawn("truncated_normal", [=](const Random& random, size_t i, const Shape&) {
    constexpr uint64_t kAttempts = 16;  // 2 * 10^-22 of the draws are still outside, and clamped
    double value = 0;
    for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
      value = random.normal(i * kAttempts + attempt);
      if (std::abs(value) <= 2) break;
    }
    return deviation * std::clamp(value, -2.0, 2.0);
  });
}

Initializer uniform(double bound) {
  return drawn("uniform",
               [=](const Random& random, size_t i, const Shape&) { return symmetric(random, i, bound); });
}

Initializer kaiming_normal_fan_out() {
  return drawn("kaiming_normal_fan_out", [](const Random& random, size_t i, const Shape& shape) {
    return std::sqrt(2.0 / fans_of(shape).out) * random.normal(i);
  });
}

Initializer fan_in_uniform(double fan_in) {
  return drawn("fan_in_uniform", [=](const Random& random, size_t i, const Shape& shape) {
    return symmetric(random, i, 1.0 / std::sqrt(fan_in > 0 ? fan_in : fans_of(shape).in));
  });
}

Initializer xavier_uniform() {
  return drawn("xavier_uniform", [](const Random& random, size_t i, const Shape& shape) {
    const Fans fans = fans_of(shape);
    return symmetric(random, i, std::sqrt(6.0 / (fans.in + fans.out)));
  });
}

Tensor initialize(const Initializer& initializer, const std::string& name, const Shape& shape, uint64_t seed,
                  DataType data_type) {
  Tensor tensor(data_type, shape);
  initializer.fill(tensor, seed, hash_name(name.data(), name.size()));
  return tensor;
}

}  // namespace tessera::nn
