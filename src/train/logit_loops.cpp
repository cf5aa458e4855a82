#include "train/logit_loops.h"

// Processors with SSSE3 or SSE4 and no AVX2 take what all have, and Ice Lake's AVX-512 has nothing that these
// loops use: each would be compiled once more for no speed.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/logit_loops.cpp"
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// Once for each of the targets, too.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace tessera::train::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace {

bool raise_floats(float* HWY_RESTRICT highest, const float* HWY_RESTRICT logits, size_t count) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  auto nan = hn::IsNaN(hn::Zero(d));
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto logit = hn::LoadU(d, logits + i);
    hn::StoreU(hn::Max(hn::LoadU(d, highest + i), logit), d, highest + i);
    nan = hn::Or(nan, hn::IsNaN(logit));
  }
  bool all_numbers = hn::AllFalse(d, nan);
  for (; i < count; ++i) {
    const auto logit = hn::LoadU(one, logits + i);
    hn::StoreU(hn::Max(hn::LoadU(one, highest + i), logit), one, highest + i);
    all_numbers &= hn::AllFalse(one, hn::IsNaN(logit));
  }
  return all_numbers;
}

size_t find_floats(float least, const float* HWY_RESTRICT logits, size_t count,
                   uint32_t* HWY_RESTRICT numbers) {
  const hn::ScalableTag<float> d;
  size_t found = 0;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const size_t end = std::min(i + hn::Lanes(d), count);
    const bool is_whole = end - i == hn::Lanes(d);
    if (is_whole && hn::AllFalse(d, hn::Ge(hn::LoadU(d, logits + i), hn::Set(d, least)))) continue;
    for (size_t k = i; k < end; ++k) {
      numbers[found] = static_cast<uint32_t>(k);
      found += logits[k] >= least ? 1 : 0;
    }
  }
  return found;
}

double write_doubles(const float* HWY_RESTRICT logits, size_t count, double highest, double inverse,
                     double* HWY_RESTRICT weights) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const auto write = [&](auto tag, size_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(tag)> narrow;
    const auto below = hn::Sub(hn::PromoteTo(tag, hn::LoadU(narrow, logits + i)), hn::Set(tag, highest));
    const auto weight = hn::Exp(tag, hn::Mul(below, hn::Set(tag, inverse)));
    hn::StoreU(weight, tag, weights + i);
    return weight;
  };
  auto sums = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) sums = hn::Add(sums, write(d, i));
  double sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) sum += hn::GetLane(write(one, i));
  return sum;
}

}  // namespace
}  // namespace tessera::train::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::train {
namespace {

HWY_EXPORT(raise_floats);
HWY_EXPORT(find_floats);
HWY_EXPORT(write_doubles);

}  // namespace

bool raise_highest(std::span<float> highest, std::span<const float> logits) {
  return HWY_DYNAMIC_DISPATCH(raise_floats)(highest.data(), logits.data(), logits.size());
}

size_t find_at_least(float least, std::span<const float> logits, std::span<uint32_t> numbers) {
  return HWY_DYNAMIC_DISPATCH(find_floats)(least, logits.data(), logits.size(), numbers.data());
}

double write_weights(std::span<const float> logits, float highest, double temperature,
                     std::span<double> weights) {
  if (std::isinf(highest)) {
    // Infinity less itself is no number, and such a token is as likely as can be.
    const auto last = std::ranges::transform(logits, weights.begin(),
                                             [&](float logit) { return logit == highest ? 1.0 : 0.0; });
    return static_cast<double>(std::count(weights.begin(), last.out, 1.0));
  }
  // Lower ones have no inverse, and say the same: the highest alone.
  const double inverse = 1 / std::max(temperature, std::numeric_limits<double>::min());
  return HWY_DYNAMIC_DISPATCH(write_doubles)(logits.data(), logits.size(), highest, inverse, weights.data());
}

}  // namespace tessera::train
#endif
