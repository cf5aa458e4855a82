// Work along one axis of [outer, extent, inner]: argmax, top-k, running sums. One block a row.
#pragma once

#include "block_sizes.h"
#include "reduce.cuh"

namespace tessera {

// Where row number `row` of [outer, extent, inner] starts; its elements lie `inner` apart.
__device__ inline int64 row_start(int64 row, int64 extent, int64 inner) {
  return row / inner * extent * inner + row % inner;
}

template <typename Operation, typename A>
__device__ inline A combine_row(A value, A* scratch) {
  return combine_block<Operation, 1, kRowThreads>(value, 0, static_cast<int>(threadIdx.x), scratch);
}

// A candidate of a search: larger first, then the smaller index; NaN is larger than every number.
template <typename V>
struct Found {
  V value;
  int64 index;  // -1: none
};
template <typename V>
__device__ inline bool precedes(const Found<V>& a, const Found<V>& b) {
  if (a.index < 0 || b.index < 0) return a.index >= 0;
  const bool a_nan = is_nan(a.value);
  const bool b_nan = is_nan(b.value);
  if (a_nan != b_nan) return a_nan;
  if (!a_nan && a.value != b.value) return a.value > b.value;
  return a.index < b.index;
}
struct First {
  template <typename V>
  static __device__ Found<V> combine(const Found<V>& a, const Found<V>& b) {
    return precedes(a, b) ? a : b;
  }
};

// The best element after `last` in the order of the search.
template <typename T>
__device__ inline Found<Lane<T>> search_row(const T* x, int64 extent, int64 inner, const Found<Lane<T>>& last,
                                            Found<Lane<T>>* scratch) {
  Found<Lane<T>> best{0, -1};
  for (int64 i = threadIdx.x; i < extent; i += kRowThreads) {
    const Found<Lane<T>> own{widen(x[i * inner]), i};
    if (last.index >= 0 && !precedes(last, own)) continue;
    if (precedes(own, best)) best = own;
  }
  return combine_row<First>(best, scratch);
}

template <typename T>
__device__ void argmax(const T* x, int32* y, int64 rows, int64 extent, int64 inner) {
  __shared__ Found<Lane<T>> scratch[kRowThreads];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const Found<Lane<T>> best =
        search_row(x + row_start(row, extent, inner), extent, inner, {0, -1}, scratch);
    if (threadIdx.x == 0) y[row] = static_cast<int32>(best.index);
  }
}

// One search of the row for each of the k results: meant for small k.
template <typename T>
__device__ void top_k(const T* x, T* values, int32* indices, int64 rows, int64 extent, int64 k) {
  __shared__ Found<Lane<T>> scratch[kRowThreads];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    Found<Lane<T>> last{0, -1};
    for (int64 j = 0; j < k; ++j) {
      last = search_row(x + row * extent, extent, 1, last, scratch);
      if (threadIdx.x != 0) continue;
      values[row * k + j] = x[row * extent + last.index];
      indices[row * k + j] = static_cast<int32>(last.index);
    }
  }
}

// Running sums of rows whose elements lie beside each other: a block walks along a row with all its threads.
template <typename T, bool exclusive, bool reverse>
__device__ void cumulative_sum(const T* x, T* y, int64 rows, int64 extent) {
  using A = Accumulator<T>;
  __shared__ A warp_sums[kRowThreads / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    A carried = 0;  // the sum of what the block has walked over
    for (int64 first = 0; first < extent; first += kRowThreads) {
      const int64 i = first + threadIdx.x;
      const int64 place = row * extent + (reverse ? extent - 1 - i : i);
      A sum = i < extent ? A(widen(x[place])) : A(0);
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const A earlier = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane >= step) sum += earlier;
      }
      const A before = __shfl_up_sync(0xffffffffu, sum, 1);
      if (lane == 31) warp_sums[warp] = sum;
      __syncthreads();
      A start = carried;
#pragma unroll
      for (int other = 0; other < kRowThreads / 32; ++other) {
        if (other < warp) start += warp_sums[other];
        carried += warp_sums[other];
      }
      __syncthreads();
      if (i >= extent) continue;
      const A own = exclusive ? (lane == 0 ? A(0) : before) : sum;
      y[place] = finish<T>(start + own, 1);
    }
  }
}

// The same where `inner` elements lie between those of a row: a thread a row, so that neighbors read
// neighbors.
template <typename T, bool exclusive, bool reverse>
__device__ void cumulative_sum_of_columns(const T* x, T* y, int64 rows, int64 extent, int64 inner) {
  using A = Accumulator<T>;
  for (int64 row = blockIdx.x * int64{kRowThreads} + threadIdx.x; row < rows;
       row += gridDim.x * int64{kRowThreads}) {
    const int64 start = row_start(row, extent, inner);
    A sum = 0;
    for (int64 step = 0; step < extent; ++step) {
      const int64 place = start + (reverse ? extent - 1 - step : step) * inner;
      const A before = sum;
      sum += A(widen(x[place]));
      y[place] = finish<T>(exclusive ? before : sum, 1);
    }
  }
}

}  // namespace tessera
