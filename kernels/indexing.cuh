// Addresses that depend on data.
#pragma once

#include "windows.cuh"

namespace tessera {

// y[outer, index, inner] = table[outer, indices[index], inner]; rows outside the table give zeros.
template <typename Index, typename T, typename I>
__device__ void gather(const T* table, const I* indices, T* y, Index outer, Index extent, Index count,
                       Index inner) {
  for_each_element<Index>(outer * count * inner, [&](Index element) {
    const Index row = element / inner;
    const int64 index = indices[row % count];
    const bool legal = index >= 0 && index < extent;
    const Index own = row / count * extent + static_cast<Index>(legal ? index : 0);
    y[element] = legal ? table[own * inner + element % inner] : T{};
  });
}

// A block for each row: y[row] = the sum of the rows with its index, in their order, and first[row] = the
// index, where it stands for the first time; 0 and -1 elsewhere. Shared memory: a bit for each thread.
template <int kThreads, typename T, typename I>
__device__ void combine_rows(const I* indices, const T* rows, I* first, T* y, int64 count, int64 inner) {
  __shared__ unsigned equal[kThreads / 32];
  for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
    const I own = indices[row];
    bool before = false;
    for (int64 other = threadIdx.x; other < row && !before; other += kThreads) before = indices[other] == own;
    before = __syncthreads_or(before);
    if (threadIdx.x == 0) first[row] = before ? static_cast<I>(-1) : own;
    for (int64 begin = 0; begin < inner; begin += kThreads) {
      const int64 column = begin + threadIdx.x;
      Accumulator<T> sum = 0;
      for (int64 tile = row / kThreads * kThreads; tile < count && !before; tile += kThreads) {
        const int64 other = tile + threadIdx.x;
        const unsigned bits = __ballot_sync(~0u, other >= row && other < count && indices[other] == own);
        if (threadIdx.x % 32 == 0) equal[threadIdx.x / 32] = bits;
        __syncthreads();
        for (int word = 0; word < kThreads / 32; ++word) {
          for (unsigned left = equal[word]; left != 0; left &= left - 1) {
            const int64 place = tile + word * 32 + __ffs(left) - 1;
            if (column < inner) sum += widen(rows[place * inner + column]);
          }
        }
        __syncthreads();
      }
      if (column < inner) y[row * inner + column] = narrow<T>(static_cast<Lane<T>>(sum));
    }
    __syncthreads();
  }
}

// Nothing to do where y is the table.
template <typename T>
__device__ void copy_table(const T* table, T* y, int64 count) {
  for_each_element(count, [&](int64 element) { y[element] = table[element]; });
}

// A block for each row: y[indices[row]] = rows[row], unless a later row has the same index.
template <int kThreads, typename T, typename I>
__device__ void set_rows(const I* indices, const T* rows, T* y, int64 count, int64 extent, int64 inner) {
  for (int64 row = blockIdx.x; row < count; row += gridDim.x) {
    const I own = indices[row];
    if (own < 0 || own >= extent) continue;
    bool after = false;
    for (int64 other = row + 1 + threadIdx.x; other < count && !after; other += kThreads)
      after = indices[other] == own;
    if (__syncthreads_or(after)) continue;
    for (int64 column = threadIdx.x; column < inner; column += kThreads)
      y[own * inner + column] = rows[row * inner + column];
  }
}

template <typename T, typename I>
__device__ void one_hot(const I* indices, T* y, int64 rows, int64 depth) {
  for_each_element(rows * depth, [&](int64 element) {
    y[element] = narrow<T>(static_cast<Lane<T>>(indices[element / depth] == element % depth ? 1 : 0));
  });
}

template <typename T>
__device__ void iota(T* y, int64 count, int64 extent, int64 inner) {
  for_each_element(
      count, [&](int64 element) { y[element] = narrow<T>(static_cast<Lane<T>>(element / inner % extent)); });
}

}  // namespace tessera
