// Two 16-bit numbers as one register.
#pragma once

#include "types.cuh"

namespace tessera {

template <typename T>
struct IsHalf {
  static constexpr bool value = false;
};
template <>
struct IsHalf<half> {
  static constexpr bool value = true;
};

template <typename T>
__device__ inline void widen_pair(float (&to)[2], uint32 pair) {
  to[0] = widen(T{static_cast<unsigned short>(pair)});
  to[1] = widen(T{static_cast<unsigned short>(pair >> 16)});
}

template <typename T>
__device__ inline uint32 narrow_pair(float first, float second) {
  uint32 pair;
  if constexpr (IsHalf<T>::value) {
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
  }
  return pair;
}

// Of any type; those of 16 bits two from each word: apart, an upper half would be moved down and up again.
template <typename T, int W>
__device__ inline void widen_all(float (&to)[W], const Pack<T, W>& pack) {
  if constexpr (sizeof(T) == 2 && W % 2 == 0) {
    const auto* pairs = reinterpret_cast<const uint32*>(&pack);
#pragma unroll
    for (int k = 0; k < W; k += 2) {
      float pair[2];
      widen_pair<T>(pair, pairs[k / 2]);
      to[k] = pair[0];
      to[k + 1] = pair[1];
    }
  } else {
#pragma unroll
    for (int k = 0; k < W; ++k) to[k] = widen(pack.at[k]);
  }
}

// The other way; those of 16 bits two by an instruction.
template <typename T, int W>
__device__ inline Pack<T, W> narrow_all(const float (&values)[W]) {
  Pack<T, W> pack;
  if constexpr (sizeof(T) == 2 && W % 2 == 0) {
    auto* pairs = reinterpret_cast<uint32*>(&pack);
#pragma unroll
    for (int k = 0; k < W; k += 2) pairs[k / 2] = narrow_pair<T>(values[k], values[k + 1]);
  } else {
#pragma unroll
    for (int k = 0; k < W; ++k) pack.at[k] = narrow<T>(values[k]);
  }
  return pack;
}

// All bits of the numbers that are above zero.
template <typename T>
__device__ inline uint32 bits_of_positive(uint32 pair) {
  uint32 bits;
  if constexpr (IsHalf<T>::value) {
    asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(bits) : "r"(pair), "r"(0u));
  } else {
    asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(bits) : "r"(pair), "r"(0u));
  }
  return bits;
}

}  // namespace tessera
