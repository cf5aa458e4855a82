// Element types as they are stored, and the types in which kernels compute with them.
#pragma once

namespace tessera {

using int8 = signed char;
using uint8 = unsigned char;
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

// The type of a value in a register. 16-bit numbers are computed in float and rounded when they are stored.
template <typename T>
struct LaneOf {
  using type = T;
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
template <typename T>
__device__ inline T widen(T x) {
  return x;
}

// From a register to storage.
template <typename T>
struct Store {
  static __device__ T narrow(Lane<T> x) { return x; }
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
  static constexpr bool value = false;
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
