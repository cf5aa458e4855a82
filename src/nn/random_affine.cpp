#include <algorithm>
#include <cmath>
#include <numbers>

#include "tessera/base/error.h"
#include "tessera/nn/image_operations.h"
#include "tessera/ops/functions.h"

#include "nn/draws.h"

namespace tessera::nn {
namespace {

// The farthest that a place lies outside the image, in its sides: it is counted from the first pixel along
// both axes, for each of which it moves by `step` at most.
double farthest_place(const RandomAffineOptions& options) {
  const double shear = std::tan(options.shear * std::numbers::pi / 180);
  const double step = std::numbers::sqrt2 * (1 + shear) / (1 - options.scale);
  return 0.5 + (2 + options.translation) * step;
}

}  // namespace

void check_random_affine(const RandomAffineOptions& options) {
  const auto hold = [&](const char* name, double value, double high) {
    require(value >= 0 && value <= high, ErrorCode::invalid_argument,
            "{} of a random affine map is {}, expected 0 to {}", name, value, high);
  };
  hold("degrees", options.degrees, 180);
  hold("translation", options.translation, 1);
  hold("scale", options.scale, 0.9);
  hold("shear", options.shear, 45);
  hold("probability", options.probability, 1);
}

Value* random_affine(Context& context, Value* images, const RandomAffineOptions& options) {
  check_random_affine(options);
  const int64_t height = images->shape()[1].value();
  const int64_t width = images->shape()[2].value();
  const double farthest = farthest_place(options) * static_cast<double>(std::max(height, width));
  require(farthest < 0x1p15, ErrorCode::invalid_argument,
          "a random affine map takes pixels from {} pixels away in images of {}x{}, expected below {}",
          std::ceil(farthest), width, height, 0x1p15);
  Draws draws(context, images->shape()[0], 6);
  Value* happens = draws.happens(options.probability);
  const auto draw = [&](double range, double otherwise) {
    Value* drawn = draws.between(otherwise - range, otherwise + range);
    return ops::select(happens, drawn, ops::constant_like(drawn, otherwise));
  };
  const auto translation = [&](int64_t extent) {
    return ops::round(draw(options.translation * static_cast<double>(extent), 0));
  };
  const AffineParameters parameters{.degrees = draw(options.degrees, 0),
                                    .right = translation(width),
                                    .down = translation(height),
                                    .scale = draw(options.scale, 1),
                                    .shear = draw(options.shear, 0)};
  return warp_images(images, affine_coefficients(parameters, images), options.filter);
}

}  // namespace tessera::nn
