// Shared memory of the other blocks of a cluster, from compute capability 9.0 on.
#pragma once

#include "types.cuh"

namespace tessera {

// All threads of all blocks of the cluster; what they wrote to shared memory before can be read after.
__device__ inline void wait_for_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Four numbers where `own` lies, in the block `rank`.
__device__ inline Pack<float, 4> load_of_block(const float* own, int rank) {
  Pack<float, 4> result;
  uint32 address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(static_cast<uint32>(__cvta_generic_to_shared(own))), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(result.at[0]), "=f"(result.at[1]), "=f"(result.at[2]), "=f"(result.at[3])
               : "r"(address)
               : "memory");
  return result;
}

}  // namespace tessera
