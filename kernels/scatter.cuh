// Rows added to those of a table that indices name, in time that goes with the updates and with the table.
//
// The updates are put in an order by their targets, the rows of the table, and by their own number where
// these are equal: `count_updates` counts those of each target, in chunks of them, and `place_updates` gives
// each its place. A block has a range of targets, one for each thread, and looks at all indices of a chunk;
// what it counts are whole numbers, and so all is in the same order at every run. `add_updates` then walks
// through that order. The updates of a target are cut into pieces, from the first one on, and each piece is
// added up by one block, in its order: a target that a large part of all updates names is the work of many,
// and one with a piece or less has the sum in the order of the updates. `join_pieces` adds up what pieces of
// longer ones are.
//
// P: Element, Index, rows (updates), extent (rows of the table), inner (columns), chunk (updates of a block
// that counts), chunks.
#pragma once

#include "block_sizes.h"
#include "reduce.cuh"

namespace tessera {

template <typename P>
struct ScatterAddPointers {
  const typename P::Index* indices;    // [rows]
  const typename P::Element* updates;  // [rows, inner]
  typename P::Element* y;              // [extent, inner]
  int* counts;                         // [chunks, extent]: of each target in each chunk
  int* lower;                          // [chunks, ranges]: of all targets before a range
  int* begins;                         // [extent + 1]: the place of each target's first update
  int* order;                          // [rows]: updates by place
  int* targets;                        // [rows]: their targets, by place
  // Two for each kScatterPiece places: of the target that began earlier, and of the one that begins there.
  Accumulator<typename P::Element>* pieces;  // [windows, 2, inner]
};

template <typename P>
struct ScatterBlock {
  static constexpr int64 ranges = (P::extent + kScatterThreads - 1) / kScatterThreads;
  static constexpr int64 slabs = (P::inner + kScatterThreads - 1) / kScatterThreads;
  static constexpr int64 windows = (P::rows + kScatterPiece - 1) / kScatterPiece;
};

// Where in the range from `first` on an update goes: negative or kScatterThreads and more where it does not.
// Indices outside the table go nowhere.
template <typename P>
__device__ int64 place_in_range(typename P::Index index, int64 first) {
  const int64 target = static_cast<int64>(index);
  return target < P::extent ? target - first : -1;
}

template <typename P>
__device__ void count_updates(const ScatterAddPointers<P>& pointers) {
  constexpr int64 ranges = ScatterBlock<P>::ranges;
  __shared__ int counts[kScatterThreads];
  __shared__ int all_lower;
  const int thread = static_cast<int>(threadIdx.x);
  const int64 range = blockIdx.x % ranges, chunk = blockIdx.x / ranges;
  const int64 first = range * kScatterThreads, end = min(P::rows, (chunk + 1) * P::chunk);
  counts[thread] = 0;
  if (thread == 0) all_lower = 0;
  __syncthreads();
  int lower = 0;
#pragma unroll 4
  for (int64 row = chunk * P::chunk + thread; row < end; row += kScatterThreads) {
    const typename P::Index index = pointers.indices[row];
    const int64 place = place_in_range<P>(index, first);
    if (place >= 0 && place < kScatterThreads) atomicAdd(&counts[place], 1);
    lower += index >= 0 && index < first ? 1 : 0;
  }
  if (lower > 0) atomicAdd(&all_lower, lower);
  __syncthreads();
  if (first + thread < P::extent) pointers.counts[chunk * P::extent + first + thread] = counts[thread];
  if (thread == 0) pointers.lower[chunk * ranges + range] = all_lower;
}

// The sum of the values of all threads before.
__device__ inline int sum_of_threads_before(int value) {
  __shared__ int sums[kScatterThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  int sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int earlier = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += earlier;
  }
  if (lane == 31) sums[thread / 32] = sum;
  __syncthreads();
  int before = sum - value;
#pragma unroll
  for (int warp = 0; warp < kScatterThreads / 32; ++warp) {
    if (warp < thread / 32) before += sums[warp];
  }
  return before;
}

// Which of the indices of a tile are in the range from `first` on, in their order, as places in the tile.
// Returns how many. Threads have neighbors, so that an order of threads is one of places.
template <typename P>
__device__ int find_updates(const typename P::Index* indices, int64 tile, int64 end, int64 first,
                            int (&found)[kScatterTile]) {
  constexpr int kWarps = kScatterThreads / 32, kEach = kScatterTile / kScatterThreads;
  __shared__ int counts[kWarps];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const uint32 lanes_before = (1u << thread % 32) - 1;
  bool is_own[kEach];
  int before = 0, in_warp = 0;
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    const int64 row = tile + thread * kEach + v;
    const int64 place = row < end ? place_in_range<P>(indices[row], first) : -1;
    is_own[v] = place >= 0 && place < kScatterThreads;
    const uint32 bits = __ballot_sync(~0u, is_own[v]);
    before += __popc(bits & lanes_before);
    in_warp += __popc(bits);
  }
  if (thread % 32 == 0) counts[warp] = in_warp;
  __syncthreads();
  int all = 0;
#pragma unroll
  for (int other = 0; other < kWarps; ++other) {
    if (other < warp) before += counts[other];
    all += counts[other];
  }
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    if (is_own[v]) found[before++] = thread * kEach + v;
  }
  __syncthreads();
  return all;
}

template <typename P>
__device__ void place_updates(const ScatterAddPointers<P>& pointers) {
  constexpr int64 ranges = ScatterBlock<P>::ranges;
  __shared__ int found[kScatterTile];
  __shared__ int next[kScatterThreads];  // the place of the next update of each target
  __shared__ int all_lower;
  const int thread = static_cast<int>(threadIdx.x);
  const int64 range = blockIdx.x % ranges, chunk = blockIdx.x / ranges;
  const int64 first = range * kScatterThreads, end = min(P::rows, (chunk + 1) * P::chunk);
  if (thread == 0) all_lower = 0;
  __syncthreads();
  for (int64 other = thread; other < P::chunks; other += kScatterThreads)
    atomicAdd(&all_lower, pointers.lower[other * ranges + range]);
  int all = 0, earlier = 0;  // of the target, and of these those of chunks before
  if (first + thread < P::extent) {
#pragma unroll 8
    for (int64 other = 0; other < P::chunks; ++other) {
      const int count = pointers.counts[other * P::extent + first + thread];
      all += count;
      earlier += other < chunk ? count : 0;
    }
  }
  int begin = sum_of_threads_before(all);
  begin += all_lower;
  next[thread] = begin + earlier;
  if (chunk == 0 && first + thread < P::extent) {
    pointers.begins[first + thread] = begin;
    if (first + thread == P::extent - 1) pointers.begins[P::extent] = begin + all;
  }
  const uint32 lanes_before = (1u << thread % 32) - 1;
  for (int64 tile = chunk * P::chunk; tile < end; tile += kScatterTile) {
    const int count = find_updates<P>(pointers.indices, tile, end, first, found);
    // A range has few of the updates, in general, and a warp gives equal ones their order at once.
    for (int n = thread; thread < 32 && n - thread < count; n += 32) {
      const int64 row = n < count ? tile + found[n] : tile;
      const int own = n < count ? static_cast<int>(place_in_range<P>(pointers.indices[row], first)) : -1;
      const uint32 equal = __match_any_sync(~0u, own);
      const int place = own >= 0 ? next[own] + __popc(equal & lanes_before) : 0;
      __syncwarp();
      if (own >= 0) {
        if ((equal & lanes_before) == 0) next[own] = place + __popc(equal);
        pointers.order[place] = static_cast<int>(row);
        pointers.targets[place] = static_cast<int>(first) + own;
      }
      __syncwarp();
    }
    __syncthreads();  // until then the list is read
  }
}

// The pieces that begin in a window of kScatterPiece places, and end in the next one at the latest.
template <typename P>
__device__ void add_window(const ScatterAddPointers<P>& pointers, int64 window, int64 column) {
  using T = typename P::Element;
  constexpr int kBoth = 2 * kScatterPiece, kAhead = 8;
  static_assert(kBoth <= kScatterThreads, "a thread for each place");
  __shared__ int rows[kBoth];
  __shared__ bool begins_piece[kBoth], ends_piece[kBoth];
  __shared__ int result[kBoth];  // of the piece that ends there: a row of y, or ~(a row of pieces)
  __shared__ int first, stop;    // where the first piece begins, and the last one ends
  const int thread = static_cast<int>(threadIdx.x);
  const int64 origin = window * kScatterPiece, place = origin + thread;
  if (thread == 0) {
    first = kBoth;
    stop = 0;
  }
  __syncthreads();
  if (thread < kBoth && place < pointers.begins[P::extent]) {
    const int target = pointers.targets[place];
    const int64 begin = pointers.begins[target], end = pointers.begins[target + 1];
    const int64 piece = begin + (place - begin) / kScatterPiece * kScatterPiece;
    const int64 piece_end = min(piece + kScatterPiece, end);
    rows[thread] = pointers.order[place];
    begins_piece[thread] = place == piece;
    ends_piece[thread] = place + 1 == piece_end;
    result[thread] = end - begin <= kScatterPiece
                         ? target
                         : ~static_cast<int>(2 * (piece / kScatterPiece) + (piece == begin ? 1 : 0));
    if (place == piece && thread < kScatterPiece) {
      atomicMin(&first, thread);
      atomicMax(&stop, static_cast<int>(piece_end - origin));
    }
  }
  __syncthreads();
  if (column >= P::inner) return;
  Accumulator<T> sum = 0;
  for (int begin = first; begin < stop; begin += kAhead) {
    T ahead[kAhead];
#pragma unroll
    for (int n = 0; n < kAhead; ++n)  // without a branch, so that all are under way at once
      ahead[n] = pointers.updates[rows[begin + n < stop ? begin + n : stop - 1] * P::inner + column];
#pragma unroll
    for (int n = 0; n < kAhead; ++n) {
      if (begin + n >= stop) break;
      if (begins_piece[begin + n]) sum = 0;
      sum += widen(ahead[n]);
      if (!ends_piece[begin + n]) continue;
      const int own = result[begin + n];
      if (own >= 0) {
        pointers.y[own * P::inner + column] = narrow<T>(static_cast<Lane<T>>(sum));
      } else {
        pointers.pieces[~own * P::inner + column] = sum;
      }
    }
  }
}

// Zeros for those of kScatterPiece targets that no update names.
template <typename P>
__device__ void clear_targets(const ScatterAddPointers<P>& pointers, int64 first) {
  using T = typename P::Element;
  __shared__ int begins[kScatterPiece + 1];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread <= kScatterPiece && first + thread <= P::extent)
    begins[thread] = pointers.begins[first + thread];
  __syncthreads();
  for (int n = 0; n < kScatterPiece && first + n < P::extent; ++n) {
    if (begins[n] != begins[n + 1]) continue;
    for (int64 column = thread; column < P::inner; column += kScatterThreads)
      pointers.y[(first + n) * P::inner + column] = narrow<T>(static_cast<Lane<T>>(0));
  }
}

template <typename P>
__device__ void add_updates(const ScatterAddPointers<P>& pointers) {
  constexpr int64 windows = ScatterBlock<P>::windows, slabs = ScatterBlock<P>::slabs;
  const int64 block = blockIdx.x;
  if (block < windows * slabs) {
    add_window(pointers, block / slabs, block % slabs * kScatterThreads + threadIdx.x);
  } else {
    clear_targets(pointers, (block - windows * slabs) * kScatterPiece);
  }
}

// The target of more than a piece that begins in the block's window, of which there is one at most.
template <typename P>
__device__ void join_pieces(const ScatterAddPointers<P>& pointers) {
  using T = typename P::Element;
  constexpr int64 slabs = ScatterBlock<P>::slabs;
  __shared__ int own;
  const int thread = static_cast<int>(threadIdx.x);
  const int64 window = blockIdx.x / slabs, column = blockIdx.x % slabs * kScatterThreads + thread;
  const int64 place = window * kScatterPiece + thread;
  if (thread == 0) own = -1;
  __syncthreads();
  if (thread < kScatterPiece && place < pointers.begins[P::extent]) {
    const int target = pointers.targets[place];
    if (pointers.begins[target] == place && pointers.begins[target + 1] - place > kScatterPiece) own = target;
  }
  __syncthreads();
  if (own < 0 || column >= P::inner) return;
  const int64 updates = pointers.begins[own + 1] - pointers.begins[own];
  const int64 count = (updates + kScatterPiece - 1) / kScatterPiece;
  Accumulator<T> sum = pointers.pieces[(2 * window + 1) * P::inner + column];
#pragma unroll 16
  for (int64 piece = 1; piece < count; ++piece)
    sum += pointers.pieces[2 * (window + piece) * P::inner + column];
  pointers.y[own * P::inner + column] = narrow<T>(static_cast<Lane<T>>(sum));
}

}  // namespace tessera
