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

// Highway's Exp is specified up to 104 (706); beyond, and for NaN, this completes it.
template <class D, class V>
HWY_INLINE V exp_anywhere(D d, V x) {
  using T = hn::TFromD<D>;
  const V high = hn::Set(d, sizeof(T) == 4 ? T(88.8) : T(709.8));
  const V result = hn::Exp(d, hn::Min(x, hn::Set(d, sizeof(T) == 4 ? T(89) : T(710))));
  const V overflowed =
      hn::IfThenElse(hn::Gt(x, high), hn::Set(d, std::numeric_limits<T>::infinity()), result);
  return hn::IfThenElse(hn::IsNaN(x), x, overflowed);
}

// e^x of floats, for formulas that add it to one: within 1 ulp from -87 to 88. What is smaller gives no less
// than the least normal number, what is larger infinity. A polynomial of the sixth degree (least squares of
// relative errors, a fortieth of a ulp off) around the nearest power of two; Highway's Exp takes twice as
// long for numbers below the normal ones.
template <class D, class V>
HWY_INLINE V exp_float(D d, V x) {
  const hn::RebindToSigned<D> whole;
  const V bounded = within_limits(x, hn::Set(d, -87.3F), hn::Set(d, 89.0F));
  const V power = hn::Round(hn::Mul(bounded, hn::Set(d, 1.44269504F)));
  // log(2) in two parts, of which the first times any power is exact.
  V rest = hn::NegMulAdd(power, hn::Set(d, 0.693359375F), bounded);
  rest = hn::NegMulAdd(power, hn::Set(d, -2.12194440e-4F), rest);
  V sum = hn::MulAdd(hn::Set(d, 1.38145906e-3F), rest, hn::Set(d, 8.36871751e-3F));
  sum = hn::MulAdd(sum, rest, hn::Set(d, 4.16683890e-2F));
  sum = hn::MulAdd(sum, rest, hn::Set(d, 1.66665211e-1F));
  sum = hn::MulAdd(sum, rest, hn::Set(d, 4.99999940e-1F));
  sum = hn::Add(hn::MulAdd(hn::Mul(rest, rest), sum, rest), hn::Set(d, 1.0F));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(whole, power), hn::Set(whole, 127)));
  return hn::Mul(sum, hn::BitCast(d, exponent));
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

// erf in fp32 by two minimax polynomials, one around 0 and one for log(1 - erf), after N. Juffa, "Efficient
// vectorizable erff" (stackoverflow.com/questions/35148198); maximum error 1 ulp with fused multiply-adds.
template <class D, class V>
HWY_INLINE V erf_float(D d, V x) {
  const V t = hn::Abs(x);
  const V s = hn::Mul(x, x);
  V large = hn::MulAdd(hn::Set(d, -1.72853470e-5f), t, hn::Set(d, 3.83197126e-4f));
  const V upper = hn::MulAdd(hn::Set(d, -3.88396438e-3f), t, hn::Set(d, 2.42546219e-2f));
  large = hn::MulAdd(large, s, upper);
  large = hn::MulAdd(large, t, hn::Set(d, -1.06777877e-1f));
  large = hn::MulAdd(large, t, hn::Set(d, -6.34846687e-1f));
  large = hn::MulAdd(large, t, hn::Set(d, -1.28717512e-1f));
  large = hn::MulAdd(large, t, hn::Neg(t));
  large = hn::CopySign(hn::Sub(hn::Set(d, 1.0f), exp_float(d, large)), x);
  V small = hn::Set(d, -5.96761703e-4f);
  small = hn::MulAdd(small, s, hn::Set(d, 4.99119423e-3f));
  small = hn::MulAdd(small, s, hn::Set(d, -2.67681349e-2f));
  small = hn::MulAdd(small, s, hn::Set(d, 1.12819925e-1f));
  small = hn::MulAdd(small, s, hn::Set(d, -3.76125336e-1f));
  small = hn::MulAdd(small, s, hn::Set(d, 1.28379166e-1f));
  small = hn::MulAdd(small, x, x);
  const V result = hn::IfThenElse(hn::Gt(t, hn::Set(d, 0.927734375f)), large, small);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
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
