// The elementwise primitives, one function each, on values in registers. Integers wrap.
#pragma once

#include "types.cuh"

namespace tessera {

template <typename T>
struct UnsignedOf {
  using type = T;
};
template <>
struct UnsignedOf<int8> {
  using type = uint32;
};
template <>
struct UnsignedOf<uint8> {
  using type = uint32;
};
template <>
struct UnsignedOf<int16> {
  using type = uint32;
};
template <>
struct UnsignedOf<uint16> {
  using type = uint32;
};
template <>
struct UnsignedOf<int32> {
  using type = uint32;
};
template <>
struct UnsignedOf<int64> {
  using type = uint64;
};
template <typename T>
using Unsigned = typename UnsignedOf<T>::type;  // a floating type is itself

template <typename T>
__device__ inline bool is_nan(T x) {
  return x != x;
}

template <typename T>
__device__ inline T op_add(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <typename T>
__device__ inline T op_subtract(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <typename T>
__device__ inline T op_multiply(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
}
template <typename T>
__device__ inline T op_negate(T a) {
  return static_cast<T>(-static_cast<Unsigned<T>>(a));
}
template <typename T>
__device__ inline T op_divide(T a, T b) {
  if constexpr (IsFloating<T>::value) {
    return a / b;
  } else {
    return b == 0                                             ? T(0)
           : b == static_cast<T>(-1) && Limits<T>::lowest < 0 ? op_negate(a)
                                                              : static_cast<T>(a / b);
  }
}
template <typename T>
__device__ inline T op_maximum(T a, T b) {
  return is_nan(a) || a > b ? a : b;
}
template <typename T>
__device__ inline T op_minimum(T a, T b) {
  return is_nan(a) || a < b ? a : b;
}
template <typename T>
__device__ inline bool op_equal(T a, T b) {
  return a == b;
}
template <typename T>
__device__ inline bool op_not_equal(T a, T b) {
  return a != b;
}
template <typename T>
__device__ inline bool op_less(T a, T b) {
  return a < b;
}
template <typename T>
__device__ inline bool op_less_equal(T a, T b) {
  return a <= b;
}
template <typename T>
__device__ inline bool op_greater(T a, T b) {
  return a > b;
}
template <typename T>
__device__ inline bool op_greater_equal(T a, T b) {
  return a >= b;
}
__device__ inline bool op_logical_and(bool a, bool b) {
  return a && b;
}
__device__ inline bool op_logical_or(bool a, bool b) {
  return a || b;
}
__device__ inline bool op_logical_not(bool a) {
  return !a;
}
template <typename T>
__device__ inline T op_select(bool condition, T when_true, T when_false) {
  return condition ? when_true : when_false;
}

template <typename T>
__device__ inline T op_absolute(T x) {
  if constexpr (IsFloating<T>::value) {
    return x < 0 ? -x : x == 0 ? T(0) : x;
  } else {
    return x < 0 ? op_negate(x) : x;
  }
}
template <typename T>
__device__ inline T op_sign(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;
}
// NaN stays NaN.
template <typename T>
__device__ inline T op_relu(T x) {
  return x < 0 ? T(0) : x;
}
// One instruction, as the maximum that forgets NaN is.
__device__ inline float op_relu(float x) {
  float y;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
  return y;
}
template <typename T>
__device__ inline T op_square(T x) {
  return op_multiply(x, x);
}
template <typename T>
__device__ inline T op_reciprocal(T x) {
  return 1 / x;
}
template <typename T>
__device__ inline bool op_is_finite(T x) {
  return x - x == 0;
}

__device__ inline float op_power(float a, float b) {
  return powf(a, b);
}
__device__ inline double op_power(double a, double b) {
  return pow(a, b);
}
__device__ inline float op_exp(float x) {
  return expf(x);
}
__device__ inline double op_exp(double x) {
  return exp(x);
}
__device__ inline float op_log(float x) {
  return logf(x);
}
__device__ inline double op_log(double x) {
  return log(x);
}
__device__ inline float op_sqrt(float x) {
  return sqrtf(x);
}
__device__ inline double op_sqrt(double x) {
  return sqrt(x);
}
__device__ inline float op_rsqrt(float x) {
  return rsqrtf(x);
}
__device__ inline double op_rsqrt(double x) {
  return rsqrt(x);
}
__device__ inline float op_erf(float x) {
  return erff(x);
}
__device__ inline double op_erf(double x) {
  return erf(x);
}
__device__ inline float op_tanh(float x) {
  return tanhf(x);
}
__device__ inline double op_tanh(double x) {
  return tanh(x);
}
__device__ inline float op_sin(float x) {
  return sinf(x);
}
__device__ inline double op_sin(double x) {
  return sin(x);
}
__device__ inline float op_cos(float x) {
  return cosf(x);
}
__device__ inline double op_cos(double x) {
  return cos(x);
}
__device__ inline float op_floor(float x) {
  return floorf(x);
}
__device__ inline double op_floor(double x) {
  return floor(x);
}
__device__ inline float op_ceil(float x) {
  return ceilf(x);
}
__device__ inline double op_ceil(double x) {
  return ceil(x);
}
__device__ inline float op_round(float x) {
  return rintf(x);
}
__device__ inline double op_round(double x) {
  return rint(x);
}
// Within a unit of itself: what makes the last bit of a quotient right takes longer than all else of a
// sigmoid.
__device__ inline float quick_reciprocal(float x) {
  float quotient;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(quotient) : "f"(x));
  return quotient;
}
__device__ inline float op_sigmoid(float x) {
  return quick_reciprocal(1 + op_exp(-x));
}
__device__ inline double op_sigmoid(double x) {
  return 1 / (1 + op_exp(-x));
}
// 1 / (1 + 2^x), with one instruction for the power, too.
__device__ inline float quick_logistic(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return quick_reciprocal(1.0f + power);
}
// Within 1e-5 of themselves, which round to 16 bits as the exact ones do but for ties. Near zero, where its
// difference would lose digits, tanh is two terms of its series.
__device__ inline float sigmoid_in_half(float x) {
  constexpr float log2_e = 1.4426950408889634f;
  return quick_logistic(-log2_e * x);
}
__device__ inline float tanh_in_half(float x) {
  constexpr float log2_e = 1.4426950408889634f;
  const float far = 1.0f - 2.0f * quick_logistic(2 * log2_e * x);
  return fabsf(x) < 0.02f ? x - x * x * x * (1.0f / 3.0f) : far;
}

// gelu with approximate = true: Hendrycks and Gimpel 2016.
__device__ inline float gelu_by_tanh(float x) {
  constexpr float kRootOfTwoByPi = 0.797884583f;
  return 0.5f * x * (1.0f + tanhf(kRootOfTwoByPi * (x + 0.044715f * x * x * x)));
}

// An integer within the limits of T.
template <typename T>
struct Saturated {
  static __device__ T of(int64 x) {
    return static_cast<T>(x < Limits<T>::lowest    ? Limits<T>::lowest
                          : x > Limits<T>::highest ? Limits<T>::highest
                                                   : x);
  }
  static __device__ T of(uint64 x) {
    constexpr uint64 highest = static_cast<uint64>(Limits<T>::highest);
    return static_cast<T>(x > highest ? highest : x);
  }
};
template <>
struct Saturated<uint64> {
  static __device__ uint64 of(int64 x) { return x < 0 ? 0 : static_cast<uint64>(x); }
  static __device__ uint64 of(uint64 x) { return x; }
};
// The limits in double, truncation towards zero: both of 64-bit integers lie at powers of two that a double
// holds, but the upper one itself is too large.
template <typename T>
__device__ inline T truncated(double x) {
  if constexpr (sizeof(T) == 8 && static_cast<T>(-1) > 0) {
    return x < 1 ? 0 : x >= 0x1p64 ? ~T(0) : static_cast<T>(x);
  } else {
    if (x < static_cast<double>(Limits<T>::lowest)) return static_cast<T>(Limits<T>::lowest);
    if (x >= static_cast<double>(Limits<T>::highest)) return static_cast<T>(Limits<T>::highest);
    return static_cast<T>(static_cast<int64>(x));
  }
}

// cast: to integers truncated towards zero and saturated, NaN to 0. Where it does not saturate, integers keep
// the lowest bits, and what an 8-bit floating type cannot hold becomes infinity or NaN.
template <typename T, bool saturate = true, typename F>
__device__ inline Lane<T> op_cast(F x) {
  if constexpr (IsFloat8<T>::value) {
    return widen(Encoder<T, saturate>::of(static_cast<float>(x)));
  } else if constexpr (IsFloating<T>::value) {
    return rounded<T>(static_cast<Lane<T>>(x));
  } else if constexpr (IsFloating<F>::value) {
    return is_nan(x) ? T(0) : truncated<T>(trunc(static_cast<double>(x)));
  } else if constexpr (!saturate) {
    return static_cast<T>(x);
  } else if constexpr (sizeof(F) == 8 && static_cast<F>(-1) > 0) {
    return Saturated<T>::of(static_cast<uint64>(x));
  } else {
    return Saturated<T>::of(static_cast<int64>(x));
  }
}
template <typename F>
__device__ inline bool op_is_nonzero(F x) {
  return x != 0;
}

}  // namespace tessera
