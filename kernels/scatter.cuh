// Rows added to those of a table that indices name.
//
// A block has a row of the table, of which its threads have a column each, and a run of the updates. It looks
// at many indices at a time, lists those that are its row's, and adds up their updates in their order: no
// atomic additions, the same bits at every run. Where the table has so few rows that they leave
// multiprocessors idle, runs are short and their sums parts of what a second launch adds up.
//
// P: Element, Index, Sum (what is written: Element, or float for parts), rows (updates), extent (rows of the
// table), inner (columns), run (updates of a block).
#pragma once

#include "block_sizes.h"
#include "reduce.cuh"

namespace tessera {

template <typename P>
struct ScatterAddPointers {
  const typename P::Index* indices;    // [rows]
  const typename P::Element* updates;  // [rows, inner]
  typename P::Sum* y;                  // [runs, extent, inner]
};

// Which of the indices of a tile are `own`, in their order, as places in the tile. Returns how many. Threads
// have neighbors, so that an order of threads is one of places.
template <typename P, int kThreads, int kEach>
__device__ int find_updates(const typename P::Index* indices, int64 tile, int64 end, int64 own,
                            int (&found)[kThreads * kEach]) {
  __shared__ int counts[kThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const uint32 lanes_before = (1u << thread % 32) - 1;
  bool equal[kEach];
  int before = 0, in_warp = 0;
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    const int64 row = tile + thread * kEach + v;
    equal[v] = row < end && indices[row] == static_cast<typename P::Index>(own);
    const uint32 bits = __ballot_sync(~0u, equal[v]);
    before += __popc(bits & lanes_before);
    in_warp += __popc(bits);
  }
  if (thread % 32 == 0) counts[warp] = in_warp;
  __syncthreads();
  int all = 0;
#pragma unroll
  for (int other = 0; other < kThreads / 32; ++other) {
    if (other < warp) before += counts[other];
    all += counts[other];
  }
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    if (equal[v]) found[before++] = thread * kEach + v;
  }
  __syncthreads();
  return all;
}

template <typename P>
__device__ void scatter_add(const ScatterAddPointers<P>& pointers) {
  using T = typename P::Element;
  constexpr int kThreads = kScatterThreads, kEach = 4, kTile = kThreads * kEach;
  constexpr int64 slabs = (P::inner + kThreads - 1) / kThreads;
  constexpr int64 runs = P::rows > P::run ? (P::rows + P::run - 1) / P::run : 1;
  __shared__ int found[kTile];
  for (int64 item = blockIdx.x; item < slabs * P::extent * runs; item += gridDim.x) {
    const int64 column = item % slabs * kThreads + threadIdx.x;
    const int64 own = item / slabs % P::extent, run = item / slabs / P::extent;
    const int64 end = min(P::rows, (run + 1) * P::run);
    Accumulator<T> sum = 0;
    for (int64 tile = run * P::run; tile < end; tile += kTile) {
      const int count = find_updates<P, kThreads, kEach>(pointers.indices, tile, end, own, found);
      if (column < P::inner) {
        const T* updates = pointers.updates + tile * P::inner + column;
#pragma unroll 8
        for (int n = 0; n < count; ++n) sum += widen(updates[found[n] * P::inner]);
      }
      __syncthreads();  // until then the list is read
    }
    if (column < P::inner)
      pointers.y[(run * P::extent + own) * P::inner + column] =
          narrow<typename P::Sum>(static_cast<Lane<typename P::Sum>>(sum));
  }
}

}  // namespace tessera
