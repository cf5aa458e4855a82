#include "tessera/nn/augmentation.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "nn/channels.h"
#include "nn/draws.h"

namespace tessera::nn {
namespace {

constexpr double kErasedAspect = 0.3;

Value* factor(Draws& draws, double range) {
  return range > 0 ? draws.between(std::max(0.0, 1 - range), 1 + range) : nullptr;
}

// One where the color stays as it is.
Value* where(Value* condition, Value* factor, double otherwise) {
  return factor == nullptr ? nullptr : ops::select(condition, factor, ops::constant_like(factor, otherwise));
}

ColorFactors draw_color(Context& context, Dimension batch, const AugmentationOptions& options) {
  Draws draws(context, batch, 6);
  Value* jitters = draws.happens(options.color_probability);
  ColorFactors factors{.brightness = where(jitters, factor(draws, options.brightness), 1),
                       .contrast = where(jitters, factor(draws, options.contrast), 1),
                       .saturation = where(jitters, factor(draws, options.saturation), 1)};
  if (options.hue > 0) factors.hue = where(jitters, draws.between(-options.hue, options.hue), 0);
  if (options.grayscale > 0) {
    Value* gray = draws.happens(options.grayscale);
    Value* saturation =
        factors.saturation != nullptr ? factors.saturation : ops::constant_like(draws.uniform(), 1);
    factors.saturation = ops::select(gray, ops::zeros_like(saturation), saturation);
  }
  return factors;
}

bool changes_color(const AugmentationOptions& options) {
  const bool jitters =
      options.brightness > 0 || options.contrast > 0 || options.saturation > 0 || options.hue > 0;
  return options.grayscale > 0 || (jitters && options.color_probability > 0);
}

Rectangles draw_erased(Context& context, const Value* images, const AugmentationOptions& options) {
  const auto height = static_cast<double>(images->shape()[1].value());
  const auto width = static_cast<double>(images->shape()[2].value());
  Draws draws(context, images->shape()[0], 5);
  Value* erases = draws.happens(options.erasing);
  Value* area = ops::multiply(draws.between(options.erasing_minimum_share, options.erasing_maximum_share),
                              height * width);
  const double widest = -std::log(kErasedAspect);
  Value* aspect = ops::exp(draws.between(-widest, widest));  // height / width
  Value* rows = ops::clip(ops::round(ops::sqrt(ops::multiply(area, aspect))), 1, height);
  Value* columns = ops::clip(ops::round(ops::sqrt(ops::divide(area, aspect))), 1, width);
  const auto place = [&](Value* extent, double room) {
    Value* places = ops::subtract(room + 1, extent);
    return ops::minimum(ops::floor(ops::multiply(draws.uniform(), places)), ops::subtract(room, extent));
  };
  Value* top = place(rows, height);
  Value* left = place(columns, width);
  return {top, left, ops::select(erases, ops::add(top, rows), top), ops::add(left, columns)};
}

}  // namespace

Value* inside(const Rectangles& areas, const Value* images) {
  const auto between = [&](Value* low, Value* high, int64_t axis) {
    SymbolicShape along{1, 1, 1, 1};
    along[static_cast<size_t>(axis)] = images->shape()[static_cast<size_t>(axis)];
    Value* place = ops::iota(low->graph(), along, axis, DataType::fp32);
    const auto of_images = [](Value* numbers) {
      return ops::reshape(numbers, {numbers->shape()[0], 1, 1, 1});
    };
    return ops::logical_and(ops::greater_equal(place, of_images(low)), ops::less(place, of_images(high)));
  };
  return ops::logical_and(between(areas.top, areas.bottom, 1), between(areas.left, areas.right, 2));
}

bool AugmentationOptions::changes_images() const {
  return affine.changes_images() || rand_augment.operations > 0 || changes_color(*this) || erasing > 0;
}

void check_augmentation(const AugmentationOptions& options, int64_t channels) {
  const auto code = ErrorCode::invalid_argument;
  const auto hold = [&](const char* name, double value, double high) {
    require(value >= 0 && value <= high, code, "{} is {}, expected 0 to {}", name, value, high);
  };
  check_random_affine(options.affine);
  check_rand_augment(options.rand_augment);
  constexpr double kMost = 10;
  hold("brightness", options.brightness, kMost);
  hold("contrast", options.contrast, kMost);
  hold("saturation", options.saturation, kMost);
  hold("hue", options.hue, 0.5);
  hold("color_probability", options.color_probability, 1);
  hold("grayscale", options.grayscale, 1);
  hold("erasing", options.erasing, 1);
  hold("mixup", options.mixup, kMost);
  hold("cutmix", options.cutmix, kMost);
  hold("mix_probability", options.mix_probability, 1);
  require(options.erasing_minimum_share > 0 &&
              options.erasing_minimum_share <= options.erasing_maximum_share &&
              options.erasing_maximum_share <= 1,
          code, "erasing takes from {} to {} of the area, expected 0 < minimum <= maximum <= 1",
          options.erasing_minimum_share, options.erasing_maximum_share);
  require(channels == 3 || (options.saturation == 0 && options.hue == 0 && options.grayscale == 0), code,
          "saturation, hue and grayscale are of images with 3 channels, these have {}", channels);
  const auto fills = std::ssize(options.erasing_fill);
  require(fills == 1 || fills == channels, code, "erasing_fill has {} values, the images have {} channels",
          fills, channels);
}

Value* augment_images(Context& context, Value* images, const AugmentationOptions& options) {
  check_augmentation(options, images->shape().back().value());
  if (options.affine.changes_images()) images = random_affine(context, images, options.affine);
  if (options.rand_augment.operations > 0) images = rand_augment(context, images, options.rand_augment);
  if (changes_color(options)) images = adjust_color(images, draw_color(context, images->shape()[0], options));
  images = ops::cast(images, DataType::fp32);
  if (options.erasing == 0) return images;
  const Rectangles erased = draw_erased(context, images, options);
  return ops::select(inside(erased, images), of_channels(images, options.erasing_fill), images);
}

}  // namespace tessera::nn
