// The Tensor Cores' instructions for 16-bit numbers and for TF32, how their operands are read, and how tiles
// of them lie in shared memory.
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

// Elements of 16 bytes, and so many as an instruction adds over: it takes the same registers for both widths.
template <typename T>
inline constexpr int chunk_elements = 16 / static_cast<int>(sizeof(T));
template <typename T>
inline constexpr int depth = 2 * chunk_elements<T>;

// sums += a * b, for 16 x depth numbers by depth x 8, in TF32 for numbers of 32 bits.
template <typename T>
__device__ inline void multiply(float (&sums)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  if constexpr (sizeof(T) == 4) {
    multiply_16x8x8(sums, a, b0, b1);
  } else {
    multiply_16x8x16<T>(sums, a, b0, b1);
  }
}

// Numbers that an instruction takes as they are: those of 32 bits are rounded.
template <typename T, int V>
__device__ inline Pack<T, V> as_factors(Pack<T, V> pack) {
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = __uint_as_float(rounded_to_tf32(pack.at[v]));
  }
  return pack;
}

// The same, of fp32 numbers in the registers of an operand.
__device__ inline void round_operand(uint32 (&numbers)[4]) {
#pragma unroll
  for (int n = 0; n < 4; ++n) numbers[n] = rounded_to_tf32(__uint_as_float(numbers[n]));
}

// Which of 8 * `tiles` columns the column `column` of the tile `tile` stands for, so that a thread ends with
// 2 * `tiles` neighbors: at 2 * `tiles` * t.
__device__ constexpr int dealt_column(int tiles, int tile, int column) {
  return 2 * tiles * (column / 2) + 2 * tile + column % 2;
}

// The columns of a thread in so many tiles: whole runs of neighbors, of at most 16 bytes each, so that what
// it reads and writes of a row are whole accesses.
template <typename T, int Tiles>
struct DealtColumns {
  static constexpr int count = 2 * Tiles;
  static constexpr int run = count < chunk_elements<T> ? count : chunk_elements<T>;
  static constexpr int run_tiles = run / 2;

  // Which column the column `column` of the tile `tile` stands for.
  __device__ static constexpr int of(int tile, int column) {
    return tile / run_tiles * (8 * run_tiles) + dealt_column(run_tiles, tile % run_tiles, column);
  }
  // Where the `v`-th column of a thread lies.
  __device__ static constexpr int at(int lane, int v) {
    return v / run * (4 * run) + lane % 4 * run + v % run;
  }

  template <typename S>
  __device__ static Pack<S, count> load_all(const S* row, int lane) {
    Pack<S, count> all;
#pragma unroll
    for (int v = 0; v < count; v += run) {
      const Pack<S, run> own = load<run>(row + at(lane, v));
#pragma unroll
      for (int n = 0; n < run; ++n) all.at[v + n] = own.at[n];
    }
    return all;
  }
  // Of a row of a tile in shared memory, from the column `first` on.
  template <typename Tile>
  __device__ static Pack<T, count> load_of_tile(const Tile& tile, int lane, int row, int first) {
    Pack<T, count> all;
#pragma unroll
    for (int v = 0; v < count; v += run) {
      const int column = first + at(lane, v);
      const auto own = load<run>(tile.at(row, column / Tile::chunk) + column % Tile::chunk);
#pragma unroll
      for (int n = 0; n < run; ++n) all.at[v + n] = own.at[n];
    }
    return all;
  }
  // In global memory.
  template <typename S>
  __device__ static void store_all(S* row, int lane, const Pack<S, count>& all) {
#pragma unroll
    for (int v = 0; v < count; v += run) {
      Pack<S, run> own;
#pragma unroll
      for (int n = 0; n < run; ++n) own.at[n] = all.at[v + n];
      store<Memory::global>(row + at(lane, v), own);
    }
  }
};

// The sum over the 8 rows of the lanes that share a column of the sums; the same in all of them.
__device__ inline float sum_of_rows(float value) {
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}
// The same over the 4 lanes that share a row.
__device__ inline float sum_of_columns(float value) {
#pragma unroll
  for (int distance = 1; distance < 4; distance *= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// Two numbers as one register of an operand.
template <typename T>
__device__ inline uint32 pair_of(T first, T second) {
  return static_cast<uint32>(first.bits) | static_cast<uint32>(second.bits) << 16;
}

// A register of `b`, whose numbers lie `stride` apart from `first` on, in the thread's column.
template <typename T>
__device__ inline uint32 operand_of_column(const T* first, int stride, int lane, int word) {
  if constexpr (sizeof(T) == 4) {
    return rounded_to_tf32(first[(lane % 4 + 4 * word) * stride]);
  } else {
    const T* from = first + (lane % 4 * 2 + 8 * word) * stride;
    return pair_of(from[0], from[stride]);
  }
}

// The same where they are neighbors.
template <typename T>
__device__ inline uint32 operand_of_row(const T* first, int lane, int word) {
  if constexpr (sizeof(T) == 4) {
    return rounded_to_tf32(first[lane % 4 + 4 * word]);
  } else {
    return *reinterpret_cast<const uint32*>(first + lane % 4 * 2 + 8 * word);
  }
}

// Four matrices of 8 x 8 numbers of 16 bits; each lane names a row. A thread gets two neighbors of a row.
__device__ inline void load_matrices(uint32 (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<uint32>(__cvta_generic_to_shared(row))));
}
// The same, each matrix transposed: a thread gets two neighbors of a column.
__device__ inline void load_transposed(uint32 (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<uint32>(__cvta_generic_to_shared(row))));
}
// What load_transposed reads, from compute capability 9.0 on.
__device__ inline void store_transposed(void* row, const uint32 (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<uint32>(__cvta_generic_to_shared(row))),
               "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}

// Where the 16 bytes `chunk` of a row lie in the row, so that neither 8 rows of one chunk nor few chunks of
// few rows share banks of shared memory. Rows have a multiple of 8 chunks.
__device__ inline int dealt_chunk(int row, int chunk) {
  return chunk ^ ((row & 1) << 2 | (row & 2) | (row >> 2 & 1));
}

// Rows of elements in shared memory, `Columns` wide; those of 32 bits that are factors have been rounded.
// Chunks are dealt, or rows padded: that costs room, and less arithmetic where many places of a row are read.
//
// Four rows of transposed numbers of 32 bits begin in different banks, 8 apart, if they are every other one
// of padded rows. As products may add up in any order that both factors have, a thread takes the rows 2 t and
// 2 t + 1 of these for t and t + 4.
template <typename T, int Columns, bool Padded>
class Tile {
 public:
  static constexpr int chunk = chunk_elements<T>;
  static constexpr int chunks = Columns / chunk;
  static constexpr bool padded = Padded;
  static constexpr int pitch = Columns + (padded ? chunk : 0);

  __device__ explicit Tile(T* memory) : memory_(memory) {}
  __device__ T* at(int row, int chunk_of_row) const {
    return memory_ + row * pitch + (padded ? chunk_of_row : dealt_chunk(row, chunk_of_row)) * chunk;
  }

  // The 16 x depth numbers at a row and a column as `a` of the instruction; transposed, `depth` rows of 16
  // columns, as their transposed.
  __device__ void load_a(uint32 (&to)[4], int lane, int row, int column) const {
    load_matrices(to, at(row + row_of(lane % 8) + lane / 8 % 2 * 8, column / chunk + lane / 16));
  }
  // Which of 8 rows the row `row` of `a` stands for, so that 8 lanes that read or write what a thread has of
  // two rows of products share no banks.
  __device__ static constexpr int row_of(int row) {
    return padded && sizeof(T) == 4 ? row % 2 * 4 + row / 2 : row;
  }
  __device__ void load_a_transposed(uint32 (&to)[4], int lane, int row, int column) const {
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int n = 0; n < 4; ++n) to[n] = single(lane, row, n / 2, column + n % 2 * 8);
    } else {
      load_transposed(to, transposed(lane, row, column));
    }
  }
  // Of 16 bits only.
  __device__ void store_a_transposed(const uint32 (&from)[4], int lane, int row, int column) const {
    store_transposed(transposed(lane, row, column), from);
  }
  // The depth x 16 numbers at a row and a column as `b` for two columns of tiles, two registers each.
  __device__ void load_b(uint32 (&to)[4], int lane, int row, int column) const {
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int n = 0; n < 4; ++n) to[n] = single(lane, row, n % 2, column + n / 2 * 8);
    } else {
      load_transposed(to, at(row + lane % 16, column / chunk + lane / 16));
    }
  }
  // The 16 rows of `depth` numbers at a row and a column, transposed, as such a `b`. Of 16 bits only.
  __device__ void load_b_transposed(uint32 (&to)[4], int lane, int row, int column) const {
    load_matrices(to, transposed(lane, row, column));
  }

 private:
  __device__ T* transposed(int lane, int row, int column) const {
    return at(row + lane % 8 + lane / 16 * 8, column / chunk + lane / 8 % 2);
  }
  // A number of one of the thread's two rows in 8, in its column in 8.
  __device__ uint32 single(int lane, int row, int word, int column) const {
    static_assert(padded);
    return *reinterpret_cast<const uint32*>(memory_ + (lane % 4 * 2 * pitch + lane / 4) +
                                            ((row + word) * pitch + column));
  }

  T* memory_;
};

}  // namespace tessera
