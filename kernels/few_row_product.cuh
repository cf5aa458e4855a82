// Products of a few rows by a matrix that is stored column by column, which are limited by how fast that is
// read: y [rows, columns] = end(a [rows, depth] b' + bias + residual), with b [columns, depth]. Of `a` the
// layer norm may be taken first, or that by the root mean square, by every block for itself. A warp has
// columns of its own and reads each with neighboring accesses; a matrix that no kernel writes is on its way
// before the launch before has ended.
//
// P: Element (T), rows (at most 8), columns, depth (a multiple of 16 bytes), own_columns (of a warp),
// together (accesses of a lane to a column that are under way at a time), ahead (the entry begins so, and b,
// bias, scale and shift never change), normalizes, centered, epsilon, bias, residual, and the activation:
// float end(float).
#pragma once

#include "block_sizes.h"
#include "block_sums.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "primitives.cuh"

namespace tessera {

template <typename P>
struct FewRowPointers {
  using T = typename P::Element;
  const T* a;
  const T* b;
  const T* bias;       // [columns]
  const T* residual;   // [rows, columns]
  const float* scale;  // [depth], of the norm
  const float* shift;  // null for none
  T* y;
};

// Past the first cache, which it would only fill: what is read once.
__device__ inline uint4 load_once(const void* from) {
  uint4 words;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from));
  return words;
}

template <typename P>
class FewRowProduct {
 public:
  using T = typename P::Element;
  static constexpr int threads = kFewRowThreads, warps = threads / 32;
  static constexpr int vector = 16 / static_cast<int>(sizeof(T));
  static constexpr int packs = P::depth / vector;  // of a row
  static constexpr int together = P::together;
  static constexpr int steps = (packs + 32 * together - 1) / (32 * together);
  static constexpr int results = P::rows * P::own_columns;  // of a warp
  // Sums that go on beside each other, so that one does not wait for itself.
  static constexpr int chains = results >= 4 ? 1 : 4 / results;
  static_assert(P::depth % vector == 0 && results <= 32);

  __device__ FewRowProduct(const FewRowPointers<P>& at, uint4* memory)
      : at_(at),
        rows_(reinterpret_cast<T*>(memory)),
        lane_(static_cast<int>(threadIdx.x) % 32),
        first_((static_cast<int64>(blockIdx.x) * warps + threadIdx.x / 32) * P::own_columns) {}

  __device__ void run() {
    if constexpr (P::ahead) begin();
    wait_for_launch();
    if constexpr (!P::ahead) begin();
    const int64 place = static_cast<int64>(own_row()) * P::columns + own_column();
    float residual = 0;
    if constexpr (P::residual) {
      if (writes()) residual = widen(at_.residual[place]);
    }
    if constexpr (P::normalizes) {
      normalize();
    } else {
      copy();
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      multiply(step);
      if (step + 1 < steps) read(step + 1);
    }
    const float sum = own_sum() + bias_ + residual;
    if (writes()) at_.y[place] = narrow<T>(P::end(sum));
  }

 private:
  // Of the normalization: each thread has so many neighbors at a time, and of a row so many of these.
  static constexpr int width = 4, parts = (P::depth + threads * width - 1) / (threads * width);
  static constexpr int most_parts = 8;  // in registers
  static constexpr int group = parts >= most_parts            ? 1
                               : most_parts / parts < P::rows ? most_parts / parts
                                                              : P::rows;

  // The result that this lane writes.
  __device__ int own_row() const {
    return lane_ / P::own_columns;
  }
  __device__ int64 own_column() const {
    return first_ + lane_ % P::own_columns;
  }
  __device__ bool writes() const {
    return lane_ < results && own_column() < P::columns;
  }

  __device__ static int channel(int part) {
    return (part * threads + static_cast<int>(threadIdx.x)) * width;
  }
  __device__ int pack_of(int step, int n) const {
    return (step * together + n) * 32 + lane_;
  }

  // What needs nothing of the launch before.
  __device__ void begin() {
    read(0);
    if constexpr (P::bias) {
      if (writes()) bias_ = widen(at_.bias[own_column()]);
    }
    if constexpr (P::normalizes) {
#pragma unroll
      for (int p = 0; p < parts; ++p) {
        if (channel(p) >= P::depth) continue;
        scale_[p] = load<width>(at_.scale + channel(p));
        if (at_.shift != nullptr) shift_[p] = load<width>(at_.shift + channel(p));
      }
    }
  }

  __device__ void read(int step) {
#pragma unroll
    for (int c = 0; c < P::own_columns; ++c) {
      // The last warp has fewer columns.
      const int64 column = min(first_ + c, static_cast<int64>(P::columns - 1));
      const T* row = at_.b + column * P::depth;
#pragma unroll
      for (int n = 0; n < together; ++n) {
        const int pack = pack_of(step, n);
        words_[c][n] = pack < packs ? load_once(row + pack * vector) : uint4{0, 0, 0, 0};
      }
    }
  }

  __device__ void copy() const {
    const auto* from = reinterpret_cast<const uint4*>(at_.a);
    auto* to = reinterpret_cast<uint4*>(rows_);
    for (int i = static_cast<int>(threadIdx.x); i < P::rows * packs; i += threads) to[i] = from[i];
  }

  // Mean and deviation in one round over the block, from sums of distances to the row's first element: its
  // own distance to the mean is at most the root of `depth` deviations, which bounds what cancels. Not
  // centered, from distances to 0.
  __device__ void normalize() const {
    __shared__ float scratch[2][2 * group * warps];
#pragma unroll
    for (int first = 0; first < P::rows; first += group) {
      Pack<T, width> x[group][parts];
      float starts[group], sums[2 * group] = {};
#pragma unroll
      for (int r = 0; r < group; ++r)
        starts[r] =
            P::centered ? widen(at_.a[static_cast<int64>(min(first + r, P::rows - 1)) * P::depth]) : 0.0f;
      each(first, [&](int r, int p, int64 place) { x[r][p] = load<width>(at_.a + place); });
      each(first, [&](int r, int p, int64) {
        float values[width];
        widen_all(values, x[r][p]);
#pragma unroll
        for (const float value : values) {
          const float distance = value - starts[r];
          sums[2 * r] += distance;
          sums[2 * r + 1] += distance * distance;
        }
      });
      add_over_block<threads>(sums, scratch[first / group % 2]);
      float means[group], inverses[group];
#pragma unroll
      for (int r = 0; r < group; ++r) {
        const float distance = P::centered ? sums[2 * r] / P::depth : 0.0f;
        means[r] = starts[r] + distance;
        inverses[r] =
            1 / sqrtf(op_maximum(sums[2 * r + 1] / P::depth - distance * distance, 0.0f) + P::epsilon);
      }
      each(first, [&](int r, int p, int64 place) {
        float values[width];
        widen_all(values, x[r][p]);
#pragma unroll
        for (int k = 0; k < width; ++k)
          values[k] = (values[k] - means[r]) * inverses[r] * scale_[p].at[k] + shift_[p].at[k];
        store<width>(rows_ + place, narrow_all<T>(values));
      });
    }
  }

  // What this thread has of the group's rows: row of the group, part of the row, place in [rows, depth].
  template <typename Function>
  __device__ void each(int first, const Function& function) const {
#pragma unroll
    for (int r = 0; r < group; ++r) {
#pragma unroll
      for (int p = 0; p < parts; ++p) {
        if (first + r < P::rows && channel(p) < P::depth)
          function(r, p, static_cast<int64>(first + r) * P::depth + channel(p));
      }
    }
  }

  __device__ void multiply(int step) {
#pragma unroll
    for (int n = 0; n < together; ++n) {
      const int pack = pack_of(step, n);
      if (pack >= packs) continue;
      float rows[P::rows][vector];
#pragma unroll
      for (int r = 0; r < P::rows; ++r)
        widen_all(rows[r], load<vector>(rows_ + r * P::depth + pack * vector));
#pragma unroll
      for (int c = 0; c < P::own_columns; ++c) {
        float column[vector];
        widen_all(column, reinterpret_cast<const Pack<T, vector>&>(words_[c][n]));
#pragma unroll
        for (int r = 0; r < P::rows; ++r) {
#pragma unroll
          for (int k = 0; k < vector; ++k) sums_[r][c][k % chains] += rows[r][k] * column[k];
        }
      }
    }
  }

  // Of all lanes.
  __device__ float own_sum() const {
    float own = 0;
#pragma unroll
    for (int r = 0; r < P::rows; ++r) {
#pragma unroll
      for (int c = 0; c < P::own_columns; ++c) {
        float sum = 0;
#pragma unroll
        for (const float chain : sums_[r][c]) sum += chain;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
        if (lane_ == r * P::own_columns + c) own = sum;
      }
    }
    return own;
  }

  const FewRowPointers<P>& at_;
  T* rows_;  // [rows, depth], what is multiplied
  int lane_;
  int64 first_;  // column of the warp
  uint4 words_[P::own_columns][together];
  Pack<float, width> scale_[parts];
  Pack<float, width> shift_[parts] = {};
  float bias_ = 0;
  float sums_[P::rows][P::own_columns][chains] = {};
};

template <typename P>
__device__ void few_row_product(const FewRowPointers<P>& at) {
  extern __shared__ uint4 memory[];
  FewRowProduct<P>(at, memory).run();
}

}  // namespace tessera
