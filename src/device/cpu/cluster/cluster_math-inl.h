// Mathematical functions on whole vectors, correct over the whole range of their argument.
// Included once per instruction set.
#if defined(TESSERA_CLUSTER_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CLUSTER_MATH_INL_H
#undef TESSERA_CLUSTER_MATH_INL_H
#else
#define TESSERA_CLUSTER_MATH_INL_H
#endif

#include <cmath>
#include <limits>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "device/cpu/runtime/limits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Applies a function of the standard library to each lane.
template <class D, class V, class Function>
HWY_INLINE V per_lane(D d, V x, Function function) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}

// e^x for x of at most half a log(2): a polynomial of the sixth degree, least relative errors, a twentieth of
// a ulp off.
template <class D, class V>
HWY_INLINE V exp_near_zero(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  V sum = hn::MulAdd(hn::Set(d, 1.38145710e-3F), x, hn::Set(d, 8.36873021e-3F));
  sum = hn::MulAdd(sum, x, hn::Set(d, 4.16683893e-2F));
  sum = hn::MulAdd(sum, x, hn::Set(d, 1.66665205e-1F));
  sum = hn::MulAdd(sum, x, hn::Set(d, 4.99999934e-1F));
  return hn::MulAdd(hn::MulAdd(sum, x, one), x, one);
}

// To 1.5 * 2^23 and a whole number another one is added as a whole one: their sum is in the lowest bits.
constexpr float kRounding = 12582912;

// 2 to the power of those bits, less 127.
template <class D, class Whole>
HWY_INLINE hn::Vec<D> power_of_two(D d, Whole bits) {
  return hn::BitCast(d, hn::ShiftLeft<23>(bits));
}

// e^x of floats within 2 ulp, also where it is less than the least normal number, in fewer steps than
// Highway's.
template <class D, class V>
HWY_INLINE V exp_float(D d, V x) {
  const hn::RebindToUnsigned<D> whole;
  const V bounded = within_limits(x, hn::Set(d, -104.0F), hn::Set(d, 89.0F));
  const V rounding = hn::Set(d, kRounding + 254);
  const V rounded = hn::MulAdd(bounded, hn::Set(d, 1.44269504F), rounding);
  const V power = hn::Sub(rounded, rounding);
  // log(2) in two parts, of which the first times any power is exact.
  V rest = hn::NegMulAdd(power, hn::Set(d, 0.693359375F), bounded);
  rest = hn::NegMulAdd(power, hn::Set(d, -2.12194440e-4F), rest);
  // The least powers are no normal numbers, but their halves are.
  const auto bits = hn::BitCast(whole, rounded);
  const auto half = hn::ShiftRight<1>(bits);
  return hn::Mul(hn::Mul(exp_near_zero(d, rest), power_of_two(d, half)),
                 power_of_two(d, hn::Sub(bits, half)));
}

// e^-x of floats, for formulas that add it to one: within 1 ulp for x from -10 to 10, and 3 from -88 to 87.
// Of larger x it gives no less than the least normal number, of smaller infinity.
template <class D, class V>
HWY_INLINE V exp_minus_float(D d, V x) {
  const hn::RebindToUnsigned<D> whole;
  const V bounded = within_limits(x, hn::Set(d, -89.0F), hn::Set(d, 87.3F));
  const V rounding = hn::Set(d, kRounding + 127);
  const V rounded = hn::NegMulAdd(bounded, hn::Set(d, 1.44269504F), rounding);
  const V power = hn::Sub(rounded, rounding);
  const V rest = hn::NegMulSub(power, hn::Set(d, 0.693147181F), bounded);
  return hn::Mul(exp_near_zero(d, rest), power_of_two(d, hn::BitCast(whole, rounded)));
}

// Highway's Exp of doubles is specified up to 706; beyond, and for NaN, this completes it.
template <class D, class V>
HWY_INLINE V exp_anywhere(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return exp_float(d, x);
  } else {
    const V result = hn::Exp(d, hn::Min(x, hn::Set(d, 710.0)));
    const V infinity = hn::Set(d, std::numeric_limits<double>::infinity());
    const V overflowed = hn::IfThenElse(hn::Gt(x, hn::Set(d, 709.8)), infinity, result);
    return hn::IfThenElse(hn::IsNaN(x), x, overflowed);
  }
}

// Highway's Log is specified for positive finite numbers.
template <class D, class V>
HWY_INLINE V log_anywhere(D d, V x) {
  using T = hn::TFromD<D>;
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  const V result = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), hn::Log(d, x));
  const V bounded = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  const auto legal = hn::Ge(x, zero);
  return hn::IfThenElse(legal, bounded, hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
}

template <class D, class V>
HWY_INLINE V tanh_anywhere(D d, V x) {
  using T = hn::TFromD<D>;
  // Beyond, tanh is 1 to the last bit; the bound keeps Expm1 finite.
  const V bound = hn::Set(d, sizeof(T) == 4 ? T(10) : T(20));
  const V magnitude = hn::Min(hn::Abs(x), bound);
  const V result = hn::CopySign(hn::Tanh(d, magnitude), x);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// Highway's range reduction holds within +-39000.
template <class D, class V>
HWY_INLINE V sin_anywhere(D d, V x) {
  using T = hn::TFromD<D>;
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, T(39000)))))) return hn::Sin(d, x);
  return per_lane(d, x, [](T lane) { return std::sin(lane); });
}
template <class D, class V>
HWY_INLINE V cos_anywhere(D d, V x) {
  using T = hn::TFromD<D>;
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, T(39000)))))) return hn::Cos(d, x);
  return per_lane(d, x, [](T lane) { return std::cos(lane); });
}

// erf in fp32, within 4 ulp: a rational function of least relative error to 3.92, from where erf is 1 to the
// last bit. It grows beyond, so that it is cut off at 1 wherever it is taken.
template <class D, class V>
HWY_INLINE V erf_float(D d, V x) {
  x = within_limits(x, hn::Set(d, -4.2F), hn::Set(d, 4.2F));
  const V s = hn::Mul(x, x);
  V above = hn::MulAdd(hn::Set(d, 2.04602225e-6F), s, hn::Set(d, 2.84844777e-4F));
  above = hn::MulAdd(above, s, hn::Set(d, 3.77259566e-3F));
  above = hn::MulAdd(above, s, hn::Set(d, 5.27694374e-2F));
  above = hn::MulAdd(above, s, hn::Set(d, 1.90594792e-1F));
  above = hn::MulAdd(above, s, hn::Set(d, 1.12837911F));
  V below = hn::MulAdd(hn::Set(d, 3.80477868e-5F), s, hn::Set(d, 1.16386928e-3F));
  below = hn::MulAdd(below, s, hn::Set(d, 1.49832889e-2F));
  below = hn::MulAdd(below, s, hn::Set(d, 1.14183150e-1F));
  below = hn::MulAdd(below, s, hn::Set(d, 5.02242982e-1F));
  below = hn::MulAdd(below, s, hn::Set(d, 1.0F));
  const V ratio = hn::Div(hn::Mul(x, above), below);
  return within_limits(ratio, hn::Set(d, -1.0F), hn::Set(d, 1.0F));
}
template <class D, class V>
HWY_INLINE V erf_anywhere(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return erf_float(d, x);
  } else {
    return per_lane(d, x, [](double lane) { return std::erf(lane); });
  }
}

// 1 / (1 + e^-x), by e^-|x|, which neither overflows nor loses the small results of negative x.
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>(1));
  const V small = exp_anywhere(d, hn::Neg(hn::Abs(x)));
  const V above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), small, one);
  return hn::Div(above, hn::Add(one, small));
}

// True for NaN, unlike Highway's Ne on AVX-512.
template <class V>
HWY_INLINE auto differs(V a, V b) {
  return hn::Not(hn::Eq(a, b));
}

template <class D, class V>
HWY_INLINE V sign_or_nan(D d, V x) {
  const V one = hn::CopySign(hn::Set(d, hn::TFromD<D>(1)), x);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, hn::Zero(d))), x, one);
}

// NaN when either is NaN.
template <class V>
HWY_INLINE V maximum_or_nan(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b);
}
template <class V>
HWY_INLINE V minimum_or_nan(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b);
}

template <class D, class V>
HWY_INLINE V power_per_lane(D d, V a, V b) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T bases[hn::MaxLanes(d)];
  HWY_ALIGN T exponents[hn::MaxLanes(d)];
  hn::Store(a, d, bases);
  hn::Store(b, d, exponents);
  for (size_t i = 0; i < hn::Lanes(d); ++i) bases[i] = std::pow(bases[i], exponents[i]);
  return hn::Load(d, bases);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#endif
