// Addresses that depend on data.
#pragma once

#include "windows.cuh"

namespace tessera {

// y[outer, index, inner] = table[outer, indices[index], inner]; rows outside the table give zeros.
template <typename T, typename I>
__device__ void gather(const T* table, const I* indices, T* y, int64 outer, int64 extent, int64 count,
                       int64 inner) {
  for_each_element(outer * count * inner, [&](int64 element) {
    const int64 row = element / inner % count;
    const int64 index = indices[row];
    const bool legal = index >= 0 && index < extent;
    y[element] = legal ? table[(element / inner / count * extent + index) * inner + element % inner] : T{};
  });
}

// Every result adds up its updates in their order: no atomic additions, the same bits at every run.
template <typename T, typename I>
__device__ void scatter_add(const I* indices, const T* updates, T* y, int64 rows, int64 extent, int64 inner) {
  for_each_element(extent * inner, [&](int64 element) {
    const int64 own = element / inner;
    Accumulator<T> sum = 0;
    for (int64 row = 0; row < rows; ++row) {
      if (indices[row] == own) sum += widen(updates[row * inner + element % inner]);
    }
    y[element] = narrow<T>(static_cast<Lane<T>>(sum));
  });
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

template <typename T>
__device__ void fill(T* y, int64 count, T value) {
  for_each_element(count, [&](int64 element) { y[element] = value; });
}

// M, the move, holds rank, extents[], from[] and to[] (strides), from_offset and to_offset.
template <typename T, typename M>
__device__ void strided_move(const M& m, const T* x, T* y, int64 count) {
  for_each_element(count, [&](int64 element) {
    int64 from = m.from_offset;
    int64 to = m.to_offset;
#pragma unroll
    for (int axis = m.rank - 1; axis >= 0; --axis) {
      const int64 at = element % m.extents[axis];
      element /= m.extents[axis];
      from += at * m.from[axis];
      to += at * m.to[axis];
    }
    y[to] = x[from];
  });
}

}  // namespace tessera
