#include <algorithm>
#include <cmath>
#include <numbers>

#include "tessera/base/error.h"
#include "tessera/nn/attention_parts.h"
#include "tessera/ops/rotary_embedding.h"

namespace tessera::nn {

namespace {

double scaled(double frequency, const RotaryScaling& scaling) {
  const double turns = frequency * static_cast<double>(scaling.positions) / (2 * std::numbers::pi);
  const double kept = std::clamp((turns - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
  return frequency * (kept + (1 - kept) / scaling.factor);
}

}  // namespace

RotaryAngles rotary_angles(Value* places, int64_t width, double base,
                           const std::optional<RotaryScaling>& scaling) {
  require(width > 0 && width % 2 == 0, ErrorCode::invalid_argument,
          "rotary positions of heads of {} numbers: they go in pairs", width);
  Graph& graph = places->graph();
  const Dimension& tokens = places->shape()[0];
  Tensor frequencies(DataType::fp32, {1, width / 2});
  for (int64_t i = 0; i < width / 2; ++i) {
    const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
    frequencies.set(i, scaling ? scaled(frequency, *scaling) : frequency);
  }
  Value* angles = ops::multiply(ops::reshape(ops::cast(places, DataType::fp32), {tokens, 1}),
                                ops::constant(graph, std::move(frequencies)));
  return {ops::cos(angles), ops::sin(angles)};
}

ops::Expression rotate(Value* x, const RotaryAngles& angles) {
  return ops::rotary_embedding(x, angles.cosines, angles.sines);
}

}  // namespace tessera::nn
