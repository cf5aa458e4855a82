// Mixup and CutMix.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/nn/augmentation.h"
#include "tessera/ops/functions.h"

#include "nn/draws.h"

namespace tessera::nn {
namespace {

constexpr int64_t kQuantiles = 4096;

// The quantile of each draw in [0, 1).
Value* draw_share(Value* draw, double concentration) {
  if (concentration == 1) return draw;
  const std::vector<float> quantiles = beta_quantiles(concentration, kQuantiles);
  Value* table = ops::constant(draw->graph(), Tensor::from<float>({std::ssize(quantiles)}, quantiles));
  Value* place = ops::multiply(draw, static_cast<double>(kQuantiles));
  Value* below = ops::floor(place);
  Value* first = ops::cast(below, DataType::int32);
  Value* low = ops::gather(table, first);
  Value* high = ops::gather(table, ops::add(first, 1));
  return ops::add(low, ops::multiply(ops::subtract(high, low), ops::subtract(place, below)));
}

// The rectangle of CutMix: 1 - share of the area around a place that is uniform in the image, cut at its
// borders.
Rectangles draw_pasted(Draws& draws, Value* share, const Value* images) {
  Value* side = ops::sqrt(ops::subtract(1, share));
  const auto along = [&](int64_t axis) {
    const auto extent = static_cast<double>(images->shape()[static_cast<size_t>(axis)].value());
    Value* half = ops::multiply(side, extent / 2);
    Value* middle = ops::floor(draws.between(0, extent));
    return std::pair(ops::clip(ops::round(ops::subtract(middle, half)), 0, extent),
                     ops::clip(ops::round(ops::add(middle, half)), 0, extent));
  };
  const auto [top, bottom] = along(1);
  const auto [left, right] = along(2);
  return {top, left, bottom, right};
}

// The share of an image outside the rectangle.
Value* share_outside(const Rectangles& area, const Value* images) {
  const auto pixels = static_cast<double>(images->shape()[1].value() * images->shape()[2].value());
  Value* inside = ops::multiply(ops::subtract(area.bottom, area.top), ops::subtract(area.right, area.left));
  return ops::subtract(1, ops::divide(inside, pixels));
}

}  // namespace

std::vector<float> beta_quantiles(double concentration, int64_t count) {
  // The lower half of the distribution is summed in t = x^p, in which its density has no pole at 0; the upper
  // half mirrors it.
  constexpr int kSteps = 1 << 16;
  const double p = std::min(concentration, 1.0);
  const double end = std::pow(0.5, p);
  std::vector<double> below(kSteps + 1, 0.0);
  for (int i = 0; i < kSteps; ++i) {
    const double t = end * (i + 0.5) / kSteps;
    below[static_cast<size_t>(i) + 1] =
        below[static_cast<size_t>(i)] +
        std::pow(t, concentration / p - 1) * std::pow(1 - std::pow(t, 1 / p), concentration - 1);
  }
  std::vector<float> quantiles(static_cast<size_t>(count) + 1);
  size_t step = 0;
  for (int64_t i = 0; 2 * i <= count; ++i) {
    const double wanted = 2 * static_cast<double>(i) / static_cast<double>(count) * below.back();
    while (step + 2 < below.size() && below[step + 1] < wanted) ++step;
    const double within = (wanted - below[step]) / (below[step + 1] - below[step]);
    const double t = end * (static_cast<double>(step) + std::clamp(within, 0.0, 1.0)) / kSteps;
    const auto x = static_cast<float>(std::pow(t, 1 / p));
    quantiles[static_cast<size_t>(i)] = x;
    quantiles[static_cast<size_t>(count - i)] = 1 - x;
  }
  return quantiles;
}

Value* partner_rows(Value* rows) {
  const int64_t count = rows->shape()[0].value();
  std::vector<int32_t> partners(static_cast<size_t>(count));
  std::iota(partners.begin(), partners.end(), 0);
  for (size_t i = 0; i + 1 < partners.size(); i += 2) std::swap(partners[i], partners[i + 1]);
  return ops::gather(rows, ops::constant(rows->graph(), Tensor::from<int32_t>({count}, partners)));
}

Value* mix_with_partner(Value* images, Value* partner, Value* share, const Rectangles* pasted) {
  Value* own = ops::reshape(share, {share->shape()[0], 1, 1, 1});
  Value* mixed = ops::add(partner, ops::multiply(own, ops::subtract(images, partner)));
  return pasted != nullptr ? ops::select(inside(*pasted, images), partner, mixed) : mixed;
}

Mixed mix_images(Context& context, Value* images, Value* labels, const AugmentationOptions& options) {
  Draws draws(context, images->shape()[0], 5);
  Value* partner_label = partner_rows(labels);
  Value* zero = ops::zeros_like(labels);
  Value* both = ops::logical_and(ops::greater_equal(labels, zero), ops::greater_equal(partner_label, zero));
  Value* mixes = ops::logical_and(draws.happens(options.mix_probability), both);
  Value* kind = draws.uniform();
  Value* draw = draws.uniform();
  Value* one = ops::constant_like(draw, 1);
  Value* partner = partner_rows(images);
  if (options.cutmix == 0) {
    Value* share = ops::select(mixes, draw_share(draw, options.mixup), one);
    return {mix_with_partner(images, partner, share, nullptr), partner_label, share};
  }
  Value* pastes = mixes;
  if (options.mixup > 0) pastes = ops::logical_and(mixes, ops::less(kind, ops::constant_like(kind, 0.5)));
  Rectangles area = draw_pasted(draws, draw_share(draw, options.cutmix), images);
  area.bottom = ops::select(pastes, area.bottom, area.top);
  Value* outside = share_outside(area, images);
  if (options.mixup == 0) return {ops::select(inside(area, images), partner, images), partner_label, outside};
  Value* blends = ops::logical_and(mixes, ops::logical_not(pastes));
  Value* share = ops::select(blends, draw_share(draw, options.mixup), one);
  return {mix_with_partner(images, partner, share, &area), partner_label, ops::multiply(share, outside)};
}

}  // namespace tessera::nn
