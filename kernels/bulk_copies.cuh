// The unit that copies tiles of matrices to shared memory by itself, and barriers in shared memory that count
// its bytes: of compute capability 9.0 alone.
#pragma once

#include "types.cuh"

namespace tessera {

// What the driver encodes of a matrix: an argument of a kernel, __grid_constant__.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

__device__ inline uint32 shared_address(const void* memory) {
  return static_cast<uint32>(__cvta_generic_to_shared(memory));
}

// A barrier in shared memory whose phases end when all who take part have arrived, and all bytes that they
// expect. Phases are told apart by their parity, that of the first being 0.
class PhaseBarrier {
 public:
  __device__ explicit PhaseBarrier(const uint64* memory) : address_(shared_address(memory)) {}

  __device__ void begin(int arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_), "r"(arrivals) : "memory");
  }
  __device__ void arrive_expecting(int bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_), "r"(bytes)
                 : "memory");
  }
  __device__ void arrive() const {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_) : "memory");
  }
  // At the barrier that lies there in the block `rank` of the cluster.
  __device__ void arrive_of_block(int rank) const {
    asm volatile(
        "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(address_),
        "r"(rank)
        : "memory");
  }
  __device__ void wait(int parity) const {
    asm volatile(
        "{\n.reg .pred done;\nwaiting:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra finished;\nbra waiting;\nfinished:\n}" ::"r"(address_),
        "r"(parity)
        : "memory");
  }
  __device__ uint32 address() const { return address_; }

 private:
  uint32 address_;
};

// The other blocks of the cluster, and the unit that copies, see barriers that have begun.
__device__ inline void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
}

// Starts the copy of a tile whose first element is that one, and whose size the map has; what lies beyond the
// matrix is zero.
__device__ inline void copy_tile(void* to, const TensorMap* map, PhaseBarrier barrier, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(barrier.address()), "r"(column), "r"(row)
      : "memory");
}
// The same to this place, and with this barrier, in all blocks of the cluster whose bits are set.
__device__ inline void copy_tile_to(int blocks, void* to, const TensorMap* map, PhaseBarrier barrier,
                                    int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(barrier.address()), "r"(column), "r"(row), "h"(static_cast<short>(blocks))
      : "memory");
}

// Before the first copy: the map itself.
__device__ inline void fetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Four tiles of 8 x 8 numbers of 16 bits from the warp's registers, as products leave them, to shared memory:
// lane n has the address of row n % 8 of tile n / 8.
__device__ inline void store_tiles(void* row, uint32 first, uint32 second, uint32 third, uint32 fourth) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(first), "r"(second), "r"(third), "r"(fourth)
               : "memory");
}

// How many registers each thread of the warpgroup has from here on: given back, or taken of what others gave.
template <int Registers>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

}  // namespace tessera
