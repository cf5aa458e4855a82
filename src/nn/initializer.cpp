#include "tessera/nn/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/base/fill.h"
#include "tessera/base/random.h"

namespace tessera::nn {
namespace {

// `rule(shape)` gives what makes the four numbers of a block, by Random::normals() or Random::uniforms().
template <typename Rule>
Initializer drawn(std::string name, Rule&& rule) {
  return {std::move(name), [rule](Tensor& tensor, uint64_t seed, uint64_t stream) {
            const Random random(seed, stream);
            const auto draw = rule(tensor.shape());
            fill_by_blocks(tensor, [&](uint64_t block) { return draw(random, block); });
          }};
}

auto normals(double deviation, double mean = 0) {
  return [=](const Random& random, uint64_t block) {
    std::array<double, 4> numbers = random.normals(block);
    for (double& number : numbers) number = mean + deviation * number;
    return numbers;
  };
}

auto symmetric(double bound) {
  return [=](const Random& random, uint64_t block) {
    const std::array<float, 4> uniforms = random.uniforms(block);
    std::array<double, 4> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = (2.0 * uniforms[i] - 1.0) * bound;
    return numbers;
  };
}

// Within two deviations of 1, drawn up to so many times.
double truncated(const Random& random, uint64_t index) {
  constexpr uint64_t kAttempts = 16;  // 2 * 10^-22 of the draws are still outside, and clamped
  double value = 0;
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    value = random.normal(index * kAttempts + attempt);
    if (std::abs(value) <= 2) break;
  }
  return std::clamp(value, -2.0, 2.0);
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
            fill_by_blocks(tensor, [=](uint64_t) { return std::array{value, value, value, value}; });
          }};
}
Initializer zeros() {
  return constant(0);
}
Initializer ones() {
  return constant(1);
}

Initializer normal(double deviation, double mean) {
  return drawn("normal", [=](const Shape&) { return normals(deviation, mean); });
}

Initializer truncated_normal(double deviation) {
  return drawn("truncated_normal", [=](const Shape&) {
    return [=](const Random& random, uint64_t block) {
      std::array<double, 4> numbers{};
      for (uint64_t i = 0; i < numbers.size(); ++i)
        numbers[i] = deviation * truncated(random, block * numbers.size() + i);
      return numbers;
    };
  });
}

Initializer uniform(double bound) {
  return drawn("uniform", [=](const Shape&) { return symmetric(bound); });
}

Initializer kaiming_normal_fan_out() {
  return drawn("kaiming_normal_fan_out",
               [](const Shape& shape) { return normals(std::sqrt(2.0 / fans_of(shape).out)); });
}

Initializer fan_in_uniform(double fan_in) {
  return drawn("fan_in_uniform", [=](const Shape& shape) {
    return symmetric(1.0 / std::sqrt(fan_in > 0 ? fan_in : fans_of(shape).in));
  });
}

Initializer xavier_uniform() {
  return drawn("xavier_uniform", [](const Shape& shape) {
    const Fans fans = fans_of(shape);
    return symmetric(std::sqrt(6.0 / (fans.in + fans.out)));
  });
}

Tensor initialize(const Initializer& initializer, const std::string& name, const Shape& shape, uint64_t seed,
                  DataType data_type) {
  Tensor tensor(data_type, shape);
  initializer.fill(tensor, seed, hash_name(name.data(), name.size()));
  return tensor;
}

}  // namespace tessera::nn
