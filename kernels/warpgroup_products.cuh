// The instruction with which four warps, a warpgroup, multiply numbers of 16 bits, or in TF32: its second
// factor stays in shared memory, where it is read once for all of them, and it runs beside other work. Of
// compute capability 9.0 alone.
#pragma once

#include "pairs.cuh"

namespace tessera {

// A second factor in shared memory, for that instruction: where it is, and two ways in bytes, which depend on
// how it lies there. Swizzled: the 16 bytes n of a row of 128 lie at n ^ r % 8. Of an address in a cluster
// the upper bits say in which block it is.
template <int FirstWay, int SecondWay, bool Swizzled>
__device__ inline uint64 described_factor(const void* memory) {
  const uint64 address = static_cast<uint32>(__cvta_generic_to_shared(memory)) % (1u << 18) / 16;
  return address | uint64{FirstWay / 16} << 16 | uint64{SecondWay / 16} << 32 | uint64{Swizzled} << 62;
}

// Rows in shared memory as that instruction reads them: in blocks of 64 columns, where a row takes 128 bytes
// and its 16 bytes n lie at n ^ r % 8. The memory begins at a multiple of 1024 bytes, and Rows is a multiple
// of 16.
template <typename T, int Rows, int Columns>
class SwizzledTile {
 public:
  static constexpr int chunks = Columns / 8;

  __device__ explicit SwizzledTile(T* memory) : memory_(memory) {}
  __device__ T* at(int row, int chunk) const {
    return memory_ + chunk / 8 * (Rows * 64) + row * 64 + ((chunk ^ row) & 7) * 8;
  }

  // Second factors: 16 columns, over which the product adds up, its result as wide as there are rows; and 16
  // rows, its result as wide as there are columns.
  __device__ uint64 columns_from(int column) const {
    return described(memory_ + column / 64 * (Rows * 64) + column % 64);
  }
  __device__ uint64 rows_from(int row) const { return described(memory_ + row * 64); }

 private:
  // The ways from a block of columns to the next, for rows_from, and from 8 rows to the next.
  __device__ static uint64 described(const T* memory) {
    return described_factor<Rows * 128, 1024, true>(memory);
  }

  T* memory_;
};

// Of the warps of the block's warpgroup with this index.
__device__ inline void synchronize_warpgroup(int index) {
  asm volatile("bar.sync %0, 128;" ::"r"(1 + index) : "memory");
}

// What the threads wrote to shared memory is there for products after the next barrier.
__device__ inline void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Products go on beside what follows, and nothing else may read or write their registers, until they are
// waited for: but for the last groups.
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void end_of_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Groups>
__device__ inline void wait_for_all_products_but() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}
// The compiler does not move what reads these sums before this place.
template <int Tiles>
__device__ inline void are_ready(float (&sums)[Tiles][4]) {
#pragma unroll
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
    for (int n = 0; n < 4; ++n) asm volatile("" : "+f"(sums[tile][n])::"memory");
  }
}

// multiply_rows(sums, a, b, add): sums += a * b, or = where `add` is false, for 64 x 16 numbers by 16 x 8 for
// each tile of the sums; for 64 x 8 by 8 x 8 in TF32. Each warp has 16 rows, its threads' registers of `a`
// and of each tile are those of multiply<T>. Transposed, in 16 bits: b comes from rows_from, else from
// columns_from.
#define TESSERA_PRODUCT(type, depth, transposed_text, width, sums_text, a_text, b_text, add_text, ...) \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add_text                                        \
               ", 0;\n"                                                                                \
               "wgmma.mma_async.sync.aligned.m64n" width depth ".f32." type "." type " {" sums_text    \
               "}, {" a_text "}, " b_text ", add, 1, 1" transposed_text ";\n}\n"                       \
               : __VA_ARGS__                                                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)),       \
                 "n"(static_cast<int>(Transposed)))
#define TESSERA_MULTIPLY_ROWS(tiles, transposed_text, ...)                                                \
  template <typename T, bool Transposed>                                                                  \
  __device__ inline void multiply_rows(float(&sums)[tiles][4], const uint32(&a)[4], uint64 b, bool add) { \
    if constexpr (sizeof(T) == 4) {                                                                       \
      TESSERA_PRODUCT("tf32", "k8", "", __VA_ARGS__);                                                     \
    } else if constexpr (IsHalf<T>::value) {                                                              \
      TESSERA_PRODUCT("f16", "k16", ", " transposed_text, __VA_ARGS__);                                   \
    } else {                                                                                              \
      TESSERA_PRODUCT("bf16", "k16", ", " transposed_text, __VA_ARGS__);                                  \
    }                                                                                                     \
  }
#define TESSERA_SUMS(t) "+f"(sums[t][0]), "+f"(sums[t][1]), "+f"(sums[t][2]), "+f"(sums[t][3])
#define TESSERA_SUMS4(t) TESSERA_SUMS(t), TESSERA_SUMS(t + 1), TESSERA_SUMS(t + 2), TESSERA_SUMS(t + 3)
#define TESSERA_TEXT16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define TESSERA_TEXT32 \
  TESSERA_TEXT16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TESSERA_TEXT64                                                                                \
  TESSERA_TEXT32                                                                                      \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
  "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
TESSERA_MULTIPLY_ROWS(4, "%22", "32", TESSERA_TEXT16, "%16, %17, %18, %19", "%20", "%21", TESSERA_SUMS4(0))
TESSERA_MULTIPLY_ROWS(8, "%38", "64", TESSERA_TEXT32, "%32, %33, %34, %35", "%36", "%37", TESSERA_SUMS4(0),
                      TESSERA_SUMS4(4))
TESSERA_MULTIPLY_ROWS(16, "%70", "128", TESSERA_TEXT64, "%64, %65, %66, %67", "%68", "%69", TESSERA_SUMS4(0),
                      TESSERA_SUMS4(4), TESSERA_SUMS4(8), TESSERA_SUMS4(12))
#undef TESSERA_MULTIPLY_ROWS
#undef TESSERA_PRODUCT

// multiply_factors(sums, first, a, b, add): sums += a * b, or = where `add` is false, for 64 x 16 numbers by
// 16 x Columns, 128 or 256, in 16 bits; of the tiles of sums those from `first` on. Both are described: `a`
// by SwizzledTile::columns_from, b transposed or not as in multiply_rows.
#define TESSERA_SUMS16(t) TESSERA_SUMS4(t), TESSERA_SUMS4(t + 4), TESSERA_SUMS4(t + 8), TESSERA_SUMS4(t + 12)
#define TESSERA_TEXT128                                                                               \
  TESSERA_TEXT64                                                                                      \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
  "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, " \
  "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, "  \
  "%118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TESSERA_PRODUCT(type, width, sums_text, a_text, b_text, add_text, transposed_text, ...)        \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add_text                                        \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" width "k16.f32." type "." type " {" sums_text \
               "}, " a_text ", " b_text ", add, 1, 1, 0, " transposed_text ";\n}\n"                    \
               : __VA_ARGS__                                                                           \
               : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(static_cast<int>(Transposed)))
#define TESSERA_PRODUCT_OF_FACTORS(type)                                                             \
  if constexpr (Columns == 256) {                                                                    \
    TESSERA_PRODUCT(type, "256", TESSERA_TEXT128, "%128", "%129", "%130", "%131", TESSERA_SUMS16(0), \
                    TESSERA_SUMS16(16));                                                             \
  } else {                                                                                           \
    TESSERA_PRODUCT(type, "128", TESSERA_TEXT64, "%64", "%65", "%66", "%67", TESSERA_SUMS16(first)); \
  }
template <typename T, bool Transposed, int Columns, int Tiles>
__device__ inline void multiply_factors(float (&sums)[Tiles][4], int first, uint64 a, uint64 b, bool add) {
  if constexpr (IsHalf<T>::value) {
    TESSERA_PRODUCT_OF_FACTORS("f16")
  } else {
    TESSERA_PRODUCT_OF_FACTORS("bf16")
  }
}
#undef TESSERA_PRODUCT_OF_FACTORS
#undef TESSERA_PRODUCT
#undef TESSERA_TEXT128
#undef TESSERA_SUMS16
#undef TESSERA_TEXT64
#undef TESSERA_TEXT32
#undef TESSERA_TEXT16
#undef TESSERA_SUMS4
#undef TESSERA_SUMS

}  // namespace tessera
