// Sums that all threads of a block have.
#pragma once

#include "types.cuh"

namespace tessera {

// Sums over all threads of the block, which all get them. `scratch` holds N floats for each of its warps, and
// may be written again after the next such call with other scratch.
template <int Threads, int N>
__device__ inline void add_over_block(float (&sums)[N], float* scratch) {
  constexpr int warps = Threads / 32;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
#pragma unroll
    for (float& sum : sums) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  if constexpr (warps > 1) {
    if (threadIdx.x % 32 == 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) scratch[i * warps + threadIdx.x / 32] = sums[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) {
      sums[i] = 0;
#pragma unroll
      for (int warp = 0; warp < warps; ++warp) sums[i] += scratch[i * warps + warp];
    }
  }
}

}  // namespace tessera
