// The Tensor Cores' instructions for 16-bit numbers and for TF32, how their operands are read, and how tiles
// of 16-bit numbers lie in shared memory.
#pragma once

#include "types.cuh"

namespace tessera {

// sums += a * b, for 16 x 16 numbers by 16 x 8. A thread has, with g = lane / 4 and t = lane % 4, the rows g
// and g + 8 of a and of the sums, the column g of b; the columns 2 t and 2 t + 1 of the sums; and 2 t, 2 t +
// 1, 2 t + 8 and 2 t + 9 of what is added over.
template <typename T>
__device__ inline void multiply_16x8x16(float (&sums)[4], const uint32 (&a)[4], uint32 b0, uint32 b1);
template <>
__device__ inline void multiply_16x8x16<half>(float (&sums)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void multiply_16x8x16<bfloat16>(float (&sums)[4], const uint32 (&a)[4], uint32 b0,
                                                  uint32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same for 16 x 8 numbers by 8 x 8 in TF32: of what is added over, a thread has t and t + 4.
__device__ inline void multiply_16x8x8(float (&sums)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// To the nearest number of TF32: the instruction alone would cut the last bits off.
__device__ inline uint32 rounded_to_tf32(float value) {
  uint32 result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}

// Which of 8 * `tiles` columns the column `column` of the tile `tile` stands for, so that a thread ends with
// 2 * `tiles` neighbours: at 2 * `tiles` * t.
__device__ constexpr int dealt_column(int tiles, int tile, int column) {
  return 2 * tiles * (column / 2) + 2 * tile + column % 2;
}

// The sum over the 8 rows of the lanes that share a column of the sums; the same in all of them.
__device__ inline float sum_of_rows(float value) {
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// Two numbers as one register of an operand.
template <typename T>
__device__ inline uint32 pair_of(T first, T second) {
  return static_cast<uint32>(first.bits) | static_cast<uint32>(second.bits) << 16;
}

// Four matrices of 8 x 8 numbers of 16 bits; each lane names a row. A thread gets two neighbours of a row.
__device__ inline void load_matrices(uint32 (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<uint32>(__cvta_generic_to_shared(row))));
}
// The same, each matrix turned: a thread gets two neighbours of a column.
__device__ inline void load_turned(uint32 (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<uint32>(__cvta_generic_to_shared(row))));
}

// Where the 8 elements `chunk` of a row lie in the row, so that neither 8 rows of one chunk nor few chunks of
// few rows share banks of shared memory. Rows have a multiple of 8 chunks.
__device__ inline int dealt_chunk(int row, int chunk) {
  return chunk ^ ((row & 1) << 2 | (row & 2) | (row >> 2 & 1));
}

// Rows of 16-bit elements in shared memory, `Columns` wide. Chunks are dealt, or rows padded: that costs
// room, less arithmetic where many places of a row are read, and conflicts where a warp reads few chunks of
// many rows.
template <typename T, int Columns, bool Padded>
class Tile {
 public:
  static constexpr int chunks = Columns / 8;
  static constexpr int pitch = Columns + (Padded ? 8 : 0);

  __device__ explicit Tile(T* memory) : memory_(memory) {}
  __device__ T* at(int row, int chunk) const {
    return memory_ + row * pitch + (Padded ? chunk : dealt_chunk(row, chunk)) * 8;
  }

  // The 16 x 16 numbers at a row and a chunk as `a` of the instruction; turned, their transposed.
  __device__ void load_a(uint32 (&to)[4], int lane, int row, int chunk) const {
    load_matrices(to, at(row + lane % 16, chunk + lane / 16));
  }
  __device__ void load_a_turned(uint32 (&to)[4], int lane, int row, int chunk) const {
    load_turned(to, at(row + lane % 8 + lane / 16 * 8, chunk + lane / 8 % 2));
  }
  // The 16 rows by 16 columns at a row and a chunk as `b` for two columns of tiles, two registers each.
  __device__ void load_b(uint32 (&to)[4], int lane, int row, int chunk) const {
    load_turned(to, at(row + lane % 16, chunk + lane / 16));
  }

 private:
  T* memory_;
};

}  // namespace tessera
