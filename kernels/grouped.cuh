// Many pieces of work in one launch, each of some blocks.
#pragma once

#include "block_sizes.h"
#include "reduce.cuh"

namespace tessera {

// By value as a kernel's parameter.
template <int N>
struct Pointers {
  void* at[N];
};

// A piece of work: the step number `work` for `steps` places, with the pointers from `first_pointer` on.
struct Piece {
  int first_block;
  int work;
  int first_pointer;
  int64 steps;
};

// Where the blocks of one piece left a sum, and what becomes of it.
struct PieceSum {
  int first_block, blocks;
  int place;  // among the sums of a block
  int work;
  int pointer;
  double divisor;
};

// The piece of a block.
template <int N>
__device__ inline const Piece& piece_of(const Piece (&pieces)[N], int block) {
  int low = 0, high = N;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (pieces[middle].first_block <= block ? low : high) = middle;
  }
  return pieces[low];
}

// Sums of blocks lie in 8 bytes each, `places` of each block.
template <typename A>
__device__ inline A& sum_of_block(uint64* sums, int block, int place, int places) {
  return *reinterpret_cast<A*>(sums + block * places + place);
}

// The threads of a block add up what the blocks of a piece left, in a fixed order.
template <typename Operation, typename T>
__device__ void combine_blocks(const PieceSum& own, uint64* sums, int places, void* scratch, void* y) {
  using A = Accumulator<T>;
  constexpr int threads = kGroupThreads;
  const int thread = static_cast<int>(threadIdx.x);
  A sum = Operation::template start<A>();
  for (int block = thread; block < own.blocks; block += threads)
    sum = Operation::combine(sum, sum_of_block<A>(sums, own.first_block + block, own.place, places));
  sum = combine_block<Operation, 1, threads>(sum, 0, thread, static_cast<A*>(scratch));
  if (thread == 0) *static_cast<T*>(y) = finish<T>(sum, own.divisor);
}

}  // namespace tessera
