// Moves between strided views. M, a move, holds index (a type), rank, extents[], from[] and to[] (strides),
// from_offset and to_offset.
#pragma once

#include "block_sizes.h"
#include "windows.cuh"

namespace tessera {

template <typename I>
struct Ends {
  I from;
  I to;
};

// Where the element with that number is moved from and to, among the first `axes` axes.
template <int axes, typename M>
__device__ inline Ends<typename M::index> ends_of(const M& m, typename M::index element) {
  Ends<typename M::index> ends{m.from_offset, m.to_offset};
#pragma unroll
  for (int axis = axes - 1; axis >= 0; --axis) {
    const typename M::index at = element % m.extents[axis];
    element /= m.extents[axis];
    ends.from += at * m.from[axis];
    ends.to += at * m.to[axis];
  }
  return ends;
}

template <typename T, typename M>
__device__ void strided_move(const M& m, const T* x, T* y, typename M::index count) {
  for_each_element<typename M::index>(count, [&](typename M::index element) {
    const auto ends = ends_of<M::rank>(m, element);
    y[ends.to] = x[ends.from];
  });
}

// Writes the value wherever the move leads.
template <typename T, typename M>
__device__ void strided_fill(const M& m, T* y, T value, typename M::index count) {
  for_each_element<typename M::index>(
      count, [&](typename M::index element) { y[ends_of<M::rank>(m, element).to] = value; });
}

// The 16 bytes that begin `shift` bytes, fewer than 16, after the first of two neighbors.
__device__ inline uint4 shifted(uint4 first, uint4 second, int shift) {
  const uint32 words[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  uint32 by_two[6];
  uint32 by_one[5];
#pragma unroll
  for (int i = 0; i < 6; ++i) by_two[i] = (shift & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) by_one[i] = (shift & 4) != 0 ? by_two[i + 1] : by_two[i];
  const uint32 bits = 8 * (shift & 3);
  return {__funnelshift_r(by_one[0], by_one[1], bits), __funnelshift_r(by_one[1], by_one[2], bits),
          __funnelshift_r(by_one[2], by_one[3], bits), __funnelshift_r(by_one[3], by_one[4], bits)};
}

// Part number `part` of a row, kRowMoveBytes each, by a warp. It writes whole accesses, and reads those in
// which there is something of the row: two of them for one, where rows begin at different places within 16
// bytes.
template <typename T>
__device__ inline void move_row_part(const T* from, T* to, int64 length, int64 part, int64 parts) {
  constexpr int V = 16 / sizeof(T);
  constexpr int kAccesses = kRowMoveBytes / 16 / 32;  // of each thread
  const auto lane = static_cast<int64>(threadIdx.x % 32);
  const auto misplaced = static_cast<int64>(reinterpret_cast<uint64>(to) / sizeof(T) % V);
  const int64 head = misplaced == 0 ? 0 : V - misplaced;
  const int64 packs = (length - head) / V;
  if (part == 0 && lane < head) to[lane] = from[lane];
  const int64 rest = head + packs * V + lane;
  if (part == parts - 1 && rest < length) to[rest] = from[rest];
  const auto start = reinterpret_cast<uint64>(from + head);
  const int shift = static_cast<int>(start % 16);
  const auto* source = reinterpret_cast<const uint4*>(start - shift);
  auto* target = reinterpret_cast<uint4*>(to + head);
  uint4 first[kAccesses];
  uint4 second[kAccesses];
#pragma unroll
  for (int n = 0; n < kAccesses; ++n) {
    const int64 pack = (part * kAccesses + n) * 32 + lane;
    if (pack >= packs) continue;
    first[n] = source[pack];
    second[n] = shift == 0 ? first[n] : source[pack + 1];
  }
#pragma unroll
  for (int n = 0; n < kAccesses; ++n) {
    const int64 pack = (part * kAccesses + n) * 32 + lane;
    if (pack < packs) target[pack] = shifted(first[n], second[n], shift);
  }
}

// The same as strided_move where elements of the last axis lie beside each other in both views, but rows do
// not begin where accesses do. Rows are longer than an access; M has row_length and row_parts, too.
template <typename T, typename M>
__device__ void move_rows(const M& m, const T* x, T* y, typename M::index rows) {
  using Index = typename M::index;
  constexpr Index parts = M::row_parts;
  const Index warps = static_cast<Index>(gridDim.x) * static_cast<Index>(blockDim.x / 32);
  const Index own =
      (static_cast<Index>(blockIdx.x) * static_cast<Index>(blockDim.x) + static_cast<Index>(threadIdx.x)) /
      32;
  for (Index item = own; item < rows * parts; item += warps) {
    const auto ends = ends_of<M::rank - 1>(m, item / parts);
    move_row_part(x + ends.from, y + ends.to, M::row_length, item % parts, parts);
  }
}

}  // namespace tessera
