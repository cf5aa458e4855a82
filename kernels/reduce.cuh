// Reductions in a fixed order: the same bits at every run.
#pragma once

#include "block_sizes.h"
#include "primitives.cuh"

namespace tessera {

template <typename T>
struct Extremes {
  static __device__ T lowest() { return static_cast<T>(Limits<int64>::lowest); }
  static __device__ T highest() { return static_cast<T>(Limits<int64>::highest); }
};
template <>
struct Extremes<float> {
  static __device__ float lowest() { return __uint_as_float(0xff800000u); }
  static __device__ float highest() { return __uint_as_float(0x7f800000u); }
};
template <>
struct Extremes<double> {
  static __device__ double lowest() { return __longlong_as_double(0xfff0000000000000ULL); }
  static __device__ double highest() { return __longlong_as_double(0x7ff0000000000000ULL); }
};

struct Sum {
  template <typename A>
  static __device__ A start() {
    return A(0);
  }
  template <typename A>
  static __device__ A combine(A a, A b) {
    return a + b;
  }
};
struct Product {
  template <typename A>
  static __device__ A start() {
    return A(1);
  }
  template <typename A>
  static __device__ A combine(A a, A b) {
    return a * b;
  }
};
struct Maximum {
  template <typename A>
  static __device__ A start() {
    return Extremes<A>::lowest();
  }
  template <typename A>
  static __device__ A combine(A a, A b) {
    return op_maximum(a, b);
  }
};
struct Minimum {
  template <typename A>
  static __device__ A start() {
    return Extremes<A>::highest();
  }
  template <typename A>
  static __device__ A combine(A a, A b) {
    return op_minimum(a, b);
  }
};

// From an accumulator to the stored result; integers saturate.
template <typename T, typename A>
__device__ inline T finish(A sum, double divisor) {
  if constexpr (IsFloating<T>::value) {
    return narrow<T>(static_cast<Lane<T>>(divisor == 1 ? sum : sum / static_cast<A>(divisor)));
  } else {
    return static_cast<T>(sum < Limits<T>::lowest    ? Limits<T>::lowest
                          : sum > Limits<T>::highest ? Limits<T>::highest
                                                     : sum);
  }
}

// Combines the values of the Y threads that share a place among X; the result is whole in those with y == 0.
// `scratch` holds X * Y accumulators of shared memory and may be used again after the call.
template <typename Operation, int X, int Y, typename A>
__device__ inline A combine_block(A value, int x, int y, A* scratch) {
  scratch[y * X + x] = value;
  __syncthreads();
#pragma unroll
  for (int step = Y / 2; step > 0; step /= 2) {
    if (y < step) scratch[y * X + x] = Operation::combine(scratch[y * X + x], scratch[(y + step) * X + x]);
    __syncthreads();
  }
  const A result = scratch[x];
  __syncthreads();
  return result;
}

// Adds up the parts [chunks, results] that blocks left, in a fixed order: kCombineThreads threads work on
// kCombineResults results, those of the block.
template <typename Operation, typename T, typename A>
__device__ void combine_chunks(int64 block, const A* parts, int64 results, int chunks, double divisor, T* y) {
  constexpr int X = kCombineResults, Y = kCombineThreads / X;
  __shared__ A scratch[X * Y];
  const int own = static_cast<int>(threadIdx.x) / X;
  const int64 r = block * X + threadIdx.x % X;
  A sum = Operation::template start<A>();
  if (r < results) {
    for (int chunk = own; chunk < chunks; chunk += Y)
      sum = Operation::combine(sum, parts[chunk * results + r]);
  }
  sum = combine_block<Operation, X, Y>(sum, static_cast<int>(threadIdx.x) % X, own, scratch);
  if (own == 0 && r < results) y[r] = finish<T>(sum, divisor);
}
// The same where the results are so many that a thread for each fills the GPU.
template <typename Operation, typename T, typename A>
__device__ void combine_chunks_of_many(int64 block, const A* parts, int64 results, int chunks, double divisor,
                                       T* y) {
  const int64 r = block * kCombineThreads + threadIdx.x;
  if (r >= results) return;
  A sum = Operation::template start<A>();
#pragma unroll 8
  for (int chunk = 0; chunk < chunks; ++chunk) sum = Operation::combine(sum, parts[chunk * results + r]);
  y[r] = finish<T>(sum, divisor);
}
template <typename Operation, typename T, typename A>
__device__ void combine_chunks(const A* parts, int64 results, int chunks, double divisor, T* y) {
  combine_chunks<Operation>(int64{blockIdx.x}, parts, results, chunks, divisor, y);
}

}  // namespace tessera
