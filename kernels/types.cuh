// Element types as they are stored, and the types in which kernels compute with them.
#pragma once

namespace tessera {

using int8 = signed char;
using uint8 = unsigned char;
using int16 = short;
using uint16 = unsigned short;
using int32 = int;
using int64 = long long;
using uint32 = unsigned int;
using uint64 = unsigned long long;

struct half {
  unsigned short bits;
};
struct bfloat16 {
  unsigned short bits;
};

// 8-bit floating formats, as include/tessera/base/narrow_float.h has them: a sign, an exponent and a
// fraction. `highest`, `infinity` and `nan` are codes without sign; where there is no negative zero its code
// is the only NaN.
template <int Exponent, int Fraction, int Bias, uint32 Highest, uint32 Infinity, uint32 Nan,
          bool NegativeZero>
struct Float8 {
  static constexpr int fraction = Fraction, bias = Bias;
  static constexpr uint32 highest = Highest, infinity = Infinity, nan = Nan;
  static constexpr bool negative_zero = NegativeZero;
  uint8 bits;
};
struct fp8_e4m3fn : Float8<4, 3, 7, 0x7e, 0x7f, 0x7f, true> {};
struct fp8_e4m3fnuz : Float8<4, 3, 8, 0x7f, 0x80, 0x80, false> {};
struct fp8_e5m2 : Float8<5, 2, 15, 0x7b, 0x7c, 0x7e, true> {};
struct fp8_e5m2fnuz : Float8<5, 2, 16, 0x7f, 0x80, 0x80, false> {};
// A power of two.
struct fp8_e8m0 {
  uint8 bits;
};

template <typename T>
struct IsFloat8 {
  static constexpr bool value = false;
};
template <>
struct IsFloat8<fp8_e4m3fn> {
  static constexpr bool value = true;
};
template <>
struct IsFloat8<fp8_e4m3fnuz> {
  static constexpr bool value = true;
};
template <>
struct IsFloat8<fp8_e5m2> {
  static constexpr bool value = true;
};
template <>
struct IsFloat8<fp8_e5m2fnuz> {
  static constexpr bool value = true;
};
template <>
struct IsFloat8<fp8_e8m0> {
  static constexpr bool value = true;
};

template <bool floats>
struct LaneIf {
  template <typename T>
  using type = T;
};
template <>
struct LaneIf<true> {
  template <typename T>
  using type = float;
};

// The type of a value in a register. Numbers of 16 bits and fewer are computed in float and rounded when they
// are stored.
template <typename T>
struct LaneOf {
  using type = typename LaneIf<IsFloat8<T>::value>::template type<T>;
};
template <>
struct LaneOf<half> {
  using type = float;
};
template <>
struct LaneOf<bfloat16> {
  using type = float;
};
template <typename T>
using Lane = typename LaneOf<T>::type;

__device__ inline float widen(half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ inline float widen(bfloat16 x) {
  return __uint_as_float(static_cast<uint32>(x.bits) << 16);
}
template <int Exponent, int Fraction, int Bias, uint32 Highest, uint32 Infinity, uint32 Nan,
          bool NegativeZero>
__device__ inline float widen_float8(
    Float8<Exponent, Fraction, Bias, Highest, Infinity, Nan, NegativeZero> x) {
  const uint32 sign = x.bits & 0x80u;
  const uint32 magnitude = x.bits & 0x7fu;
  if (!NegativeZero && magnitude == 0 && sign != 0) return __uint_as_float(0x7fc00000u);
  if (magnitude > Highest)
    return __uint_as_float((sign << 24) |
                           (Infinity != Nan && magnitude == Infinity ? 0x7f800000u : 0x7fc00000u));
  const uint32 exponent = magnitude >> Fraction;
  const uint32 digits = (magnitude & ((1u << Fraction) - 1)) | (exponent == 0 ? 0u : 1u << Fraction);
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - Bias - Fraction;
  const float unit = __uint_as_float(static_cast<uint32>(power + 127) << 23);
  return __uint_as_float(__float_as_uint(static_cast<float>(digits) * unit) | (sign << 24));
}
__device__ inline float widen_float8(fp8_e8m0 x) {
  if (x.bits == 0xff) return __uint_as_float(0x7fc00000u);
  return __uint_as_float(x.bits == 0 ? 0x400000u : static_cast<uint32>(x.bits) << 23);
}
template <typename T>
__device__ inline auto widen(T x) -> typename LaneOf<T>::type {
  if constexpr (IsFloat8<T>::value) {
    return widen_float8(x);
  } else {
    return x;
  }
}

// Rounded to nearest even; what is too large becomes the highest number, or infinity or NaN.
template <typename T, bool saturate>
__device__ inline T encode(float value) {
  const uint32 word = __float_as_uint(value);
  const uint32 sign = (word >> 24) & 0x80u;
  const uint32 magnitude = word & 0x7fffffffu;
  const auto with_sign = [&](uint32 code) {
    T y;
    y.bits = static_cast<uint8>(!T::negative_zero && (code == 0 || code == T::nan) ? code : code | sign);
    return y;
  };
  if (magnitude > 0x7f800000u) return with_sign(T::nan);
  const T beyond = with_sign(saturate ? T::highest : T::infinity);
  if (magnitude == 0x7f800000u) return beyond;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  constexpr int least = 1 - T::bias;
  const uint32 digits = (magnitude & 0x7fffffu) | (exponent == -127 ? 0u : 0x800000u);
  const int dropped = 23 - T::fraction + (exponent < least ? least - exponent : 0);
  if (dropped > 24) return with_sign(0);  // less than half of the least number
  const uint32 rounded = (digits + (1u << (dropped - 1)) - 1 + ((digits >> dropped) & 1u)) >> dropped;
  const uint32 above = static_cast<uint32>((exponent < least ? least : exponent) - least);
  const uint32 code = (above << T::fraction) + rounded;
  return code > T::highest ? beyond : with_sign(code);
}
// To the nearest power of two, the greater of two; the sign does not count.
template <bool saturate>
__device__ inline fp8_e8m0 encode_power_of_two(float value) {
  const uint32 magnitude = __float_as_uint(value) & 0x7fffffffu;
  const uint32 exponent = magnitude >> 23;
  const uint32 fraction = magnitude & 0x7fffffu;
  const uint32 rounded = exponent + (fraction > 0x400000u || (fraction == 0x400000u && exponent > 0) ? 1 : 0);
  fp8_e8m0 y;
  y.bits = static_cast<uint8>(exponent == 0xff ? 0xff : saturate && rounded == 0xff ? 0xfe : rounded);
  return y;
}
template <typename T, bool saturate>
struct Encoder {
  static __device__ T of(float x) { return encode<T, saturate>(x); }
};
template <bool saturate>
struct Encoder<fp8_e8m0, saturate> {
  static __device__ fp8_e8m0 of(float x) { return encode_power_of_two<saturate>(x); }
};

// From a register to storage.
template <typename T>
struct Store {
  static __device__ T narrow(Lane<T> x) {
    if constexpr (IsFloat8<T>::value) {
      return Encoder<T, false>::of(x);
    } else {
      return x;
    }
  }
};
template <>
struct Store<half> {
  static __device__ half narrow(float x) {
    half y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
};
template <>
struct Store<bfloat16> {
  static __device__ bfloat16 narrow(float x) {
    bfloat16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
};
template <typename T>
__device__ inline T narrow(Lane<T> x) {
  return Store<T>::narrow(x);
}
// What a value in a register would be after a store and a load.
template <typename T>
__device__ inline Lane<T> rounded(Lane<T> x) {
  return widen(narrow<T>(x));
}

// Half of the least number above zero, which is rounded to zero.
template <typename T>
struct LeastHalf {
  static constexpr float value = 0;
};
template <>
struct LeastHalf<half> {
  static constexpr float value = 0x1p-25f;
};
template <>
struct LeastHalf<bfloat16> {
  static constexpr float value = 0x1p-134f;
};
// rounded<T>(x) > 0, without the conversions.
template <typename T>
__device__ inline bool is_positive_when_rounded(Lane<T> x) {
  return x > LeastHalf<T>::value;
}

// The type in which values are summed.
template <typename T>
struct AccumulatorOf {
  using type = long long;
};
template <>
struct AccumulatorOf<float> {
  using type = float;
};
template <>
struct AccumulatorOf<half> {
  using type = float;
};
template <>
struct AccumulatorOf<bfloat16> {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::type;

template <typename T>
struct Limits;
template <>
struct Limits<int8> {
  static constexpr int64 lowest = -128, highest = 127;
};
template <>
struct Limits<uint8> {
  static constexpr int64 lowest = 0, highest = 255;
};
template <>
struct Limits<int16> {
  static constexpr int64 lowest = -32768, highest = 32767;
};
template <>
struct Limits<uint16> {
  static constexpr int64 lowest = 0, highest = 65535;
};
template <>
struct Limits<uint32> {
  static constexpr int64 lowest = 0, highest = 4294967295LL;
};
template <>
struct Limits<int32> {
  static constexpr int64 lowest = -2147483647LL - 1, highest = 2147483647LL;
};
template <>
struct Limits<int64> {
  static constexpr int64 lowest = -9223372036854775807LL - 1, highest = 9223372036854775807LL;
};
template <>
struct Limits<bool> {
  static constexpr int64 lowest = 0, highest = 1;
};

template <typename T>
struct IsFloating {
  static constexpr bool value = IsFloat8<T>::value;
};
template <>
struct IsFloating<float> {
  static constexpr bool value = true;
};
template <>
struct IsFloating<double> {
  static constexpr bool value = true;
};
template <>
struct IsFloating<half> {
  static constexpr bool value = true;
};
template <>
struct IsFloating<bfloat16> {
  static constexpr bool value = true;
};

// V elements that lie side by side, moved with accesses of up to 16 bytes.
template <typename T, int V>
struct alignas(sizeof(T) * V > 16 ? 16 : sizeof(T) * V) Pack {
  T at[V];
};

template <int V, typename T>
__device__ inline Pack<T, V> load(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
// Where a store goes. What is known to be shared does not hold up what reads global memory; and what goes to
// global memory is read by other launches alone, so that whatever is read here may come before it.
enum class Memory { any, shared, global };

template <Memory Where>
__device__ inline void store_words(uint4* to, uint4 words) {
  if constexpr (Where == Memory::shared) {
    asm volatile(
        "st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(static_cast<uint32>(__cvta_generic_to_shared(to))),
        "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
        : "memory");
  } else if constexpr (Where == Memory::global) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y),
                 "r"(words.z), "r"(words.w));
  } else {
    asm volatile("st.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y), "r"(words.z),
                 "r"(words.w)
                 : "memory");
  }
}

// In accesses of 16 bytes where there are so many: the compiler stores what was computed element by element.
template <Memory Where, int V, typename T>
__device__ inline void store(T* to, const Pack<T, V>& pack) {
  constexpr int bytes = sizeof(Pack<T, V>);
  if constexpr (bytes % 16 == 0) {
    const auto* words = reinterpret_cast<const uint4*>(&pack);
#pragma unroll
    for (int n = 0; n < bytes / 16; ++n) store_words<Where>(reinterpret_cast<uint4*>(to) + n, words[n]);
  } else if constexpr (bytes == 8) {
    const auto* words = reinterpret_cast<const uint2*>(&pack);
    asm volatile("st.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(words->x), "r"(words->y) : "memory");
  } else {
    *reinterpret_cast<Pack<T, V>*>(to) = pack;
  }
}
template <int V, typename T>
__device__ inline void store(T* to, const Pack<T, V>& pack) {
  store<Memory::any>(to, pack);
}

}  // namespace tessera
