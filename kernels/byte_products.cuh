// Sums of products, of bytes four at a time.
#pragma once

#include "types.cuh"

namespace tessera {

template <typename T>
struct IsByte {
  static constexpr bool value = false;
};
template <>
struct IsByte<int8> {
  static constexpr bool value = true;
};
template <>
struct IsByte<uint8> {
  static constexpr bool value = true;
};

// The type in which products of factors A are summed for a result in T: bytes have no more than T holds.
template <typename T, typename A, bool Bytes = IsByte<A>::value>
struct ProductSumOf {
  using type = Accumulator<T>;
};
template <typename T, typename A>
struct ProductSumOf<T, A, true> {
  using type = T;
};

// sum + the products of the four bytes of both words.
template <typename A, typename B>
__device__ int32 add_four_products(int32 sum, uint32 a, uint32 b);
template <>
__device__ inline int32 add_four_products<int8, int8>(int32 sum, uint32 a, uint32 b) {
  asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}
template <>
__device__ inline int32 add_four_products<int8, uint8>(int32 sum, uint32 a, uint32 b) {
  asm("dp4a.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}
template <>
__device__ inline int32 add_four_products<uint8, int8>(int32 sum, uint32 a, uint32 b) {
  asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}
template <>
__device__ inline int32 add_four_products<uint8, uint8>(int32 sum, uint32 a, uint32 b) {
  asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}

// sum + a[0] b[0] + a[1] b[1] + ... Where `Count` is a multiple of four, bytes lie at multiples of four, too.
template <long long Count, typename S, typename A, typename B>
__device__ inline S add_products(S sum, const A* a, const B* b) {
  if constexpr (IsByte<A>::value && IsByte<B>::value && Count % 4 == 0) {
    for (int i = 0; i < Count / 4; ++i) {
      sum = add_four_products<A, B>(sum, reinterpret_cast<const uint32*>(a)[i],
                                    reinterpret_cast<const uint32*>(b)[i]);
    }
  } else {
    for (int i = 0; i < Count; ++i) sum += S(widen(a[i])) * widen(b[i]);
  }
  return sum;
}

}  // namespace tessera
