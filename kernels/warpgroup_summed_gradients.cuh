// What summed_gradients.cuh makes, for compute capability 9.0. There the Tensor Cores read dy from shared
// memory by themselves, and both products have it as their second factor: with the wide channels as rows, the
// data gradient is weights in registers by dy, and the weight gradient the input by dy. So each thread has
// two channels, of which it keeps sums in few registers. What it needs of the wide operands has the same
// layout, as a factor, as a mask and as an addend, and is read from shared memory once.
//
// P: as there, a slice of 128 channels, and item (32 or 64 pixels).
#pragma once

#include "block_sizes.h"
#include "copies.cuh"
#include "matrix_products.cuh"
#include "normalized.cuh"
#include "pointwise_layout.h"
#include "reduce.cuh"
#include "summed_gradients_pointers.cuh"
#include "warpgroup_products.cuh"

namespace tessera {

template <typename P>
class WarpgroupSummedGradients {
 public:
  using T = typename P::Element;
  static constexpr int threads = kPointwiseThreads, warpgroup = 128;
  static constexpr int columns = 64;  // of a warpgroup
  static constexpr int slices = P::wide / P::slice;
  static constexpr int item = P::item;
  static constexpr int items = (P::pixels + item - 1) / item;
  static constexpr int parts = item / 16;
  static constexpr WarpgroupSummedGradientsLayout layout{item, P::slice, P::narrow, P::norms, P::recompute};
  static constexpr int first_x = layout.first_x(), addend = first_x - 1;  // places of operands, input at 0
  static constexpr int operands = layout.operands();                      // as wide as the slice
  static constexpr int sums = 1 + P::norms;
  static constexpr int wide_elements = layout.wide_elements();
  static constexpr int stage_elements = layout.stage_elements();
  using Wide = Tile<T, P::slice, false>;
  using Narrow = SwizzledTile<T, item, P::narrow>;
  static_assert(P::slice * warpgroup == threads * columns && parts * 4 <= 16);

  __device__ WarpgroupSummedGradients(const SummedGradientsPointers<T>& pointers, uint4* memory)
      : pointers_(pointers),
        stages_(reinterpret_cast<T*>(memory)),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        column_(thread_ / 32 * 16),
        slice_(static_cast<int>(blockIdx.x) % slices * P::slice) {}

  __device__ void run() {
    prepare();
    const int step = static_cast<int>(gridDim.x) / slices;
    const int first = static_cast<int>(blockIdx.x) / slices;
    int next = first, stage = 0;
    for (; stage < P::stages - 1; ++stage, next += step) fetch(next, stage);
    for (int now = first; now < items; now += step, next += step) {
      wait_for_copies(P::stages - 2);
      show_to_products();
      __syncthreads();
      const int free = stage;
      stage = stage + 1 < P::stages ? stage + 1 : 0;
      work(now, stages_ + stage * stage_elements, next, free);
    }
    write_parts(first);
  }

 private:
  // The two wide channels of this thread.
  __device__ int channel(int half) const { return slice_ + column_ + lane_ / 4 + 8 * half; }

  __device__ void prepare() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own = channel(half);
#pragma unroll
      for (int norm = 0; norm < P::norms; ++norm) {
        means_[norm][half] = pointers_.mean[norm][own];
        if constexpr (P::recompute) {
          normalized_[norm][half] =
              normalized_by(pointers_.scale[norm][own], pointers_.bias[norm][own], means_[norm][half],
                            pointers_.variance[norm][own], P::epsilon(norm));
        }
      }
#pragma unroll
      for (int step = 0; step < P::narrow / 16; ++step) {
#pragma unroll
        for (int word = 0; word < 2; ++word) {
          const int row = step * 16 + lane_ % 4 * 2 + word * 8;
          const T* from = pointers_.weight + row * P::wide + own;
          weights_[step][2 * word + half] = pair_of(from[0], from[P::wide]);
        }
      }
    }
  }

  // Rows after the last pixel are zero: they add nothing.
  template <typename Rows>
  __device__ void fetch_rows(const Rows& to, const T* from, int width, int first) const {
#pragma unroll
    for (int n = 0; n < item * Rows::chunks / threads; ++n) {
      const int place = thread_ + n * threads, row = place / Rows::chunks, chunk = place % Rows::chunks;
      const int pixel = first + row;
      copy_ahead_or_zero(to.at(row, chunk), from + int64{min(pixel, P::pixels - 1)} * width + chunk * 8,
                         pixel < P::pixels);
    }
  }

  __device__ void fetch(int index, int stage) const {
    if (index < items) {
      T* to = stages_ + stage * stage_elements;
      fetch_rows(Narrow(to), pointers_.dy, P::narrow, index * item);
      to += item * P::narrow;
      const auto fetch_wide = [&](const T* from, int operand) {
        fetch_rows(Wide(to + operand * wide_elements), from + slice_, P::wide, index * item);
      };
      if constexpr (!P::recompute) fetch_wide(pointers_.input, 0);
      fetch_wide(pointers_.addend, addend);
#pragma unroll
      for (int norm = 0; norm < P::norms; ++norm) fetch_wide(pointers_.x[norm], first_x + norm);
    }
    end_of_copies();
  }

  // The channels of this warp at 16 pixels of an operand, as rows.
  __device__ void load_part(uint32 (&to)[4], T* wide, int operand, int part) const {
    Wide(wide + operand * wide_elements).load_a_transposed(to, lane_, 16 * part, column_);
  }

  __device__ void load_input(uint32 (&to)[4], T* wide, int part) const {
    if constexpr (!P::recompute) {
      load_part(to, wide, 0, part);
    } else {
      uint32 x[P::norms][4];
#pragma unroll
      for (int norm = 0; norm < P::norms; ++norm) load_part(x[norm], wide, first_x + norm, part);
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        float sum[2] = {};
#pragma unroll
        for (int norm = 0; norm < P::norms; ++norm) {
          const NormalizedBy by = normalized_[norm][word % 2];
          float values[2];
          widen_pair<T>(values, x[norm][word]);
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            const float own = rounded<T>(values[v] * by.factor + by.offset);
            sum[v] = norm == 0 ? own : sum[v] + own;
          }
        }
        to[word] = narrow_pair<T>(op_relu(sum[0]), op_relu(sum[1]));
      }
    }
  }

  // The products go on beside the start of copies, those of the weight gradient beside the rest too.
  __device__ void work(int index, T* stage, int next, int free) {
    const Narrow dy(stage);
    T* wide = stage + item * P::narrow;
    uint32 input[parts][4];
    uint32 mask = 0;  // for each pair of pixels a bit in either half
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      load_input(input[part], wide, part);
#pragma unroll
      for (int word = 0; word < 4; ++word)
        mask |= bits_of_positive<T>(input[part][word]) & 0x10001u << (4 * part + word);
    }
    float products[item / 8][4];
    begin_products();
#pragma unroll
    for (int step = 0; step < P::narrow / 16; ++step)
      multiply_rows<T, false>(products, weights_[step], dy.columns_from(16 * step), step > 0);
    end_of_products();
    if constexpr (P::weights) {
#pragma unroll
      for (int part = 0; part < parts; ++part)
        multiply_rows<T, true>(gradient_, input[part], dy.rows_from(16 * part), true);
      end_of_products();
    }
    fetch(next, free);
    wait_for_all_products_but<P::weights ? 1 : 0>();
    are_ready(products);
#pragma unroll
    for (int part = 0; part < parts; ++part)
      finish(part, mask >> 4 * part, products[2 * part], products[2 * part + 1], wide);
    write(index * item, wide + addend * wide_elements);
    wait_for_all_products_but<0>();
    are_ready(gradient_);
  }

  // The result takes the addend's place.
  __device__ void finish(int part, uint32 mask, const float (&low)[4], const float (&high)[4], T* wide) {
    uint32 results[4], x[P::norms][4];
    load_part(results, wide, addend, part);
#pragma unroll
    for (int norm = 0; norm < P::norms; ++norm) load_part(x[norm], wide, first_x + norm, part);
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      const int half = word % 2;
      const float* products = (word < 2 ? low : high) + 2 * half;
      float values[2];
      widen_pair<T>(values, results[word]);
      results[word] = narrow_pair<T>(products[0] + values[0], products[1] + values[1]) &
                      (mask >> word & 0x10001u) * 0xffffu;
      widen_pair<T>(values, results[word]);
#pragma unroll
      for (int v = 0; v < 2; ++v) sums_[0][half] += values[v];
#pragma unroll
      for (int norm = 0; norm < P::norms; ++norm) {
        float own[2];
        widen_pair<T>(own, x[norm][word]);
#pragma unroll
        for (int v = 0; v < 2; ++v) sums_[1 + norm][half] += values[v] * (own[v] - means_[norm][half]);
      }
    }
    Wide(wide + addend * wide_elements).store_a_transposed(results, lane_, 16 * part, column_);
  }

  // What this warpgroup has made, 128 bytes of each row.
  __device__ void write(int first, T* results) const {
    const int own = thread_ / warpgroup, thread = thread_ % warpgroup;
    synchronize_warpgroup(own);
    constexpr int chunks = columns / 8;
    const int chunk = own * chunks + thread % chunks;
    T* to = pointers_.result + slice_ + chunk * 8;
#pragma unroll
    for (int row = thread / chunks; row < item; row += warpgroup / chunks) {
      if (first + row < P::pixels)
        store(to + int64{first + row} * P::wide, load<8>(Wide(results).at(row, chunk)));
    }
  }

  __device__ void write_parts(int block) const {
    if constexpr (P::weights) {
      float* own = pointers_.weight_parts + int64{block} * (P::narrow * P::wide);
#pragma unroll
      for (int tile = 0; tile < P::narrow / 8; ++tile) {
#pragma unroll
        for (int n = 0; n < 4; ++n)
          own[(tile * 8 + lane_ % 4 * 2 + n % 2) * P::wide + channel(n / 2)] = gradient_[tile][n];
      }
    }
    const int blocks = static_cast<int>(gridDim.x) / slices;
#pragma unroll
    for (int sum = 0; sum < sums; ++sum) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float value = sum_of_columns(sums_[sum][half]);
        if (lane_ % 4 == 0)
          pointers_.sum_parts[(int64{sum} * blocks + block) * P::wide + channel(half)] = value;
      }
    }
  }

  const SummedGradientsPointers<T>& pointers_;
  T* stages_;
  int thread_, lane_;
  int column_;  // the warp's first, in the slice
  int slice_;   // the block's first wide channel
  uint32 weights_[P::narrow / 16][4];
  float gradient_[P::weights ? P::narrow / 8 : 1][4] = {};  // of the weights
  float means_[P::norms][2];
  NormalizedBy normalized_[P::norms][2];  // where the mask is recomputed
  float sums_[sums][2] = {};
};

template <typename P>
__device__ void summed_gradients(const SummedGradientsPointers<typename P::Element>& pointers) {
  extern __shared__ __align__(1024) uint4 swizzled[];
  WarpgroupSummedGradients<P>(pointers, swizzled).run();
}

}  // namespace tessera
