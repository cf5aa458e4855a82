#include "tessera/models/formula.h"

#include <cmath>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/random.h"

namespace tessera::models::formula {
namespace {

uint64_t splitmix64(uint64_t state) {
  uint64_t z = state + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

float uniform_of_bits(uint64_t bits) {
  return static_cast<float>(static_cast<double>(bits >> 40) * 0x1p-23 - 1.0);
}

// The name of the normalization that closes the residual branch to which `name` belongs, or "".
std::string closing_norm(const std::string& name, const std::set<std::string>& names) {
  const size_t layer = name.rfind(".bn");
  if (!name.starts_with("layer") || layer == std::string::npos) return "";
  const std::string block = name.substr(0, layer);
  return block + (names.contains(block + ".bn3.weight") ? ".bn3.weight" : ".bn2.weight");
}

// value = offset + scale * u, in float.
struct Line {
  float offset = 0;
  float scale = 1;
};

Line line_of(const std::string& name, const Shape& file_shape, const std::set<std::string>& names) {
  if (name.ends_with("running_mean")) return {0, 0.125F};
  if (name.ends_with("running_var")) return {1, 0.5F};
  if (file_shape.size() >= 2) {
    const int64_t fan_in = element_count(file_shape) / file_shape.front();
    return {0, static_cast<float>(std::sqrt(6.0 / static_cast<double>(fan_in)))};
  }
  if (name.ends_with("bias")) return {0, 0.125F};
  if (name == closing_norm(name, names)) return {0.125F, 0.03125F};
  return {1, 0.25F};
}

}  // namespace

float uniform(std::string_view name, uint64_t index) {
  return uniform_of_bits(splitmix64(hash_name(name.data(), name.size()) + index));
}

int64_t label(std::string_view name, uint64_t index, int64_t classes) {
  const uint64_t bits = splitmix64(hash_name(name.data(), name.size()) + index);
  return static_cast<int64_t>(bits % static_cast<uint64_t>(classes));
}

Tensor images(std::string_view name, const Shape& shape) {
  require(shape.size() == 4, ErrorCode::invalid_argument, "images are [N, H, W, C], not {}",
          to_string(shape));
  Tensor result(DataType::fp32, shape);
  const int64_t pixels = shape[1] * shape[2];
  const int64_t channels = shape[3];
  auto values = result.data<float>();
  for (int64_t i = 0; i < result.size(); ++i) {  // element [n, pixel, c]
    const int64_t n = i / (pixels * channels);
    const int64_t pixel = i / channels % pixels;
    const int64_t c = i % channels;
    values[static_cast<size_t>(i)] =
        uniform(name, static_cast<uint64_t>((n * channels + c) * pixels + pixel));
  }
  return result;
}

Tensor labels(std::string_view name, int64_t count, int64_t classes) {
  Tensor result(DataType::int32, {count});
  auto values = result.data<int32_t>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(label(name, i, classes));
  return result;
}

std::map<std::string, Tensor> weights(const std::vector<nn::Variable>& variables) {
  std::set<std::string> names;
  for (const nn::Variable& variable : variables) names.insert(variable.name);
  std::map<std::string, Tensor> result;
  for (const nn::Variable& variable : variables) {
    const Shape& file_shape = variable.file_shape.empty() ? variable.shape : variable.file_shape;
    Tensor stored(DataType::fp32, file_shape);
    const Line line = line_of(variable.name, file_shape, names);
    const uint64_t hash = hash_name(variable.name.data(), variable.name.size());
    auto values = stored.data<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const float scaled = line.scale * uniform_of_bits(splitmix64(hash + i));
      values[i] = line.offset + scaled;
    }
    result.emplace(variable.name, nn::from_file_layout(variable, stored));
  }
  return result;
}

}  // namespace tessera::models::formula
