// A convolution of few pixels and many products each, as the last layers of a network have for one image: its
// tiles alone would keep few multiprocessors busy. The blocks of a cluster share a tile of the result and
// divide what is added over, which is the window's places and, of each, the input channels. They add up what
// they have through each other's shared memory, in one order, and end as the epilogue says. Weights that no
// kernel writes are on their way before the launch before has ended.
//
// P: Element (16 bits, or float, with products in TF32), height, width, channels (of x), out_height,
// out_width, outputs, images, window_rows, window_columns, stride_y, stride_x, dilation_y, dilation_x,
// padding_top, padding_left, splits (blocks of a cluster), stages (in shared memory), ahead (the entry
// begins so, and weights never change), bias, residual, and the activation:
// float end(float).
#pragma once

#include "block_sizes.h"
#include "cluster_memory.cuh"
#include "copies.cuh"
#include "launch.cuh"
#include "matrix_products.cuh"
#include "primitives.cuh"
#include "split_layout.h"

namespace tessera {

template <typename P>
struct SplitConvolutionPointers {
  using T = typename P::Element;
  const T* x;         // [images, height, width, channels]
  const T* weight;    // [outputs, window_rows, window_columns, channels]
  const T* bias;      // [outputs]
  const T* residual;  // as the result
  T* result;          // [images, out_height, out_width, outputs]
};

template <typename P>
class SplitConvolution {
 public:
  using T = typename P::Element;
  static constexpr int threads = kSplitThreads;
  static constexpr int tile_pixels = static_cast<int>(kSplitTilePixels);
  static constexpr int tile_outputs = static_cast<int>(kSplitTileOutputs);
  static constexpr int pixels = P::images * P::out_height * P::out_width;
  static constexpr int output_tiles = P::outputs / tile_outputs;
  static constexpr int row = static_cast<int>(kSplitRowBytes) / static_cast<int>(sizeof(T));
  using Operand = Tile<T, row, false>;
  static constexpr int chunk = Operand::chunk, chunks = Operand::chunks;
  static constexpr int rows_at_once = threads / chunks;  // that all threads copy
  static constexpr int own_rows = tile_pixels / rows_at_once;
  static constexpr int parts_of_place = P::channels / row;
  static constexpr int parts = P::window_rows * P::window_columns * parts_of_place;
  static constexpr int stage_elements = static_cast<int>(split_stage_bytes()) / static_cast<int>(sizeof(T));
  static constexpr int pitch = static_cast<int>(split_sum_pitch());
  static constexpr int steps = row / depth<T>;          // of a stage
  static constexpr int own_outputs = tile_outputs / 2;  // of a warp: four share the pixels, two the outputs
  static_assert(parts_of_place * row == P::channels && output_tiles * tile_outputs == P::outputs &&
                rows_at_once == tile_outputs && own_outputs == 16);

  __device__ SplitConvolution(const SplitConvolutionPointers<P>& pointers, uint4* memory)
      : pointers_(pointers),
        stages_(reinterpret_cast<T*>(memory)),
        sums_(reinterpret_cast<float*>(memory)),
        thread_(static_cast<int>(threadIdx.x)),
        rank_(static_cast<int>(blockIdx.x) % P::splits),
        first_output_(static_cast<int>(blockIdx.x) / P::splits % output_tiles * tile_outputs),
        first_pixel_(static_cast<int>(blockIdx.x) / P::splits / output_tiles * tile_pixels) {}

  __device__ void run() {
    find_rows();
    const int first = rank_ * parts / P::splits, end = (rank_ + 1) * parts / P::splits;
    if constexpr (P::ahead) {
      for (int stage = 0; stage < P::stages - 1; ++stage) fetch_weights(first + stage, end, stage);
      wait_for_launch();
    }
    int next = first, stage = 0;
    for (; stage < P::stages - 1; ++stage, ++next) {
      if constexpr (!P::ahead) fetch_weights(next, end, stage);
      fetch_x(next, end, stage);
      end_of_copies();
    }
    stage = 0;
    for (int now = first; now < end; ++now, ++next) {
      wait_for_copies(P::stages - 2);
      __syncthreads();
      // Every thread is done with the part before, whose place the next one takes.
      const int free = stage > 0 ? stage - 1 : P::stages - 1;
      fetch_weights(next, end, free);
      fetch_x(next, end, free);
      end_of_copies();
      add_products(stages_ + stage * stage_elements);
      stage = stage + 1 < P::stages ? stage + 1 : 0;
    }
    wait_for_copies(0);
    __syncthreads();
    write_sums();
    wait_for_blocks();
    finish();
    if constexpr (P::splits > 1) wait_for_cluster();  // until then others read what is here
  }

 private:
  // Where the window of the pixels begins whose rows this thread copies.
  __device__ void find_rows() {
#pragma unroll
    for (int n = 0; n < own_rows; ++n) {
      const int pixel = first_pixel_ + thread_ / chunks + n * rows_at_once;
      const int column = pixel % P::out_width, line = pixel / P::out_width % P::out_height;
      const int image = pixel / (P::out_width * P::out_height);
      // Beyond the last pixel: above any image, so that nothing is read.
      y_[n] =
          pixel < pixels ? line * P::stride_y - P::padding_top : -P::height - P::window_rows * P::dilation_y;
      x_[n] = column * P::stride_x - P::padding_left;
      image_[n] = pointers_.x + int64{image} * (P::height * P::width * P::channels);
    }
  }

  __device__ void fetch_weights(int part, int end, int stage) const {
    if (part >= end) return;
    const int own_chunk = thread_ % chunks, own_row = thread_ / chunks;
    const T* weight = pointers_.weight + int64{first_output_ + own_row} * (parts * row);
    copy_ahead(Operand(stages_ + stage * stage_elements + tile_pixels * row).at(own_row, own_chunk),
               weight + part * row + own_chunk * chunk);
  }

  __device__ void fetch_x(int part, int end, int stage) const {
    if (part >= end) return;
    const Operand to(stages_ + stage * stage_elements);
    const int own_chunk = thread_ % chunks;
    const int place = part / parts_of_place, channel = part % parts_of_place * row + own_chunk * chunk;
    const int below = place / P::window_columns * P::dilation_y;
    const int right = place % P::window_columns * P::dilation_x;
#pragma unroll
    for (int n = 0; n < own_rows; ++n) {
      const int y = y_[n] + below, x = x_[n] + right;
      const bool inside = y >= 0 && y < P::height && x >= 0 && x < P::width;
      const T* from = inside ? image_[n] + (y * P::width + x) * P::channels + channel : pointers_.x;
      copy_ahead_or_zero(to.at(thread_ / chunks + n * rows_at_once, own_chunk), from, inside);
    }
  }

  // All operands are read before the first product, and every other one adds to sums of its own: neither
  // waits for the one before then.
  __device__ void add_products(T* stage) {
    const Operand x(stage), weight(stage + tile_pixels * row);
    const int lane = thread_ % 32;
    uint32 a[steps][4], b[steps][4];
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      x.load_a(a[step], lane, warp_pixel(), step * depth<T>);
      // As rows, since b's columns lie so: two tiles, and of each two registers.
      weight.load_a(b[step], lane, warp_output(), step * depth<T>);
    }
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      if constexpr (sizeof(T) == 4) {
        round_operand(a[step]);
        round_operand(b[step]);
      }
      multiply<T>(products_[step % 2][0], a[step], b[step][0], b[step][2]);
      multiply<T>(products_[step % 2][1], a[step], b[step][1], b[step][3]);
    }
  }

  __device__ static void wait_for_blocks() {
    if constexpr (P::splits > 1) {
      wait_for_cluster();
    } else {
      __syncthreads();
    }
  }

  __device__ void write_sums() const {
    const int lane = thread_ % 32;
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float* to =
            sums_ + (warp_pixel() + lane / 4 + 8 * half) * pitch + warp_output() + 8 * tile + lane % 4 * 2;
        Pack<float, 2> sums;
#pragma unroll
        for (int v = 0; v < 2; ++v)
          sums.at[v] = products_[0][tile][2 * half + v] + products_[1][tile][2 * half + v];
        store<Memory::any>(to, sums);
      }
    }
  }

  // Each block has its share of the tile's sums, four neighbors a thread.
  __device__ void finish() const {
    constexpr int quads_of_row = tile_outputs / 4;
    constexpr int quads = tile_pixels * quads_of_row;
    const int end = (rank_ + 1) * quads / P::splits;
    for (int quad = rank_ * quads / P::splits + thread_; quad < end; quad += threads) {
      const int pixel = first_pixel_ + quad / quads_of_row, column = quad % quads_of_row * 4;
      if (pixel >= pixels) continue;
      float values[4] = {};
#pragma unroll
      for (int rank = 0; rank < P::splits; ++rank) {
        const float* own = sums_ + quad / quads_of_row * pitch + column;
        const Pack<float, 4> part = P::splits > 1 ? load_of_block(own, rank) : load<4>(own);
#pragma unroll
        for (int v = 0; v < 4; ++v) values[v] += part.at[v];
      }
      const int64 place = int64{pixel} * P::outputs + first_output_ + column;
      if constexpr (P::bias) add(values, pointers_.bias + first_output_ + column);
      if constexpr (P::residual) add(values, pointers_.residual + place);
      Pack<T, 4> result;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        values[v] = P::end(values[v]);
        result.at[v] = narrow<T>(values[v]);
      }
      store<Memory::global>(pointers_.result + place, result);
    }
  }

  __device__ static void add(float (&values)[4], const T* from) {
    const Pack<T, 4> others = load<4>(from);
#pragma unroll
    for (int v = 0; v < 4; ++v) values[v] += widen(others.at[v]);
  }

  // The warp's first ones in the tile.
  __device__ int warp_pixel() const {
    return thread_ / 64 * 16;
  }
  __device__ int warp_output() const {
    return thread_ / 32 % 2 * own_outputs;
  }

  const SplitConvolutionPointers<P>& pointers_;
  T* stages_;
  float* sums_;
  int thread_, rank_, first_output_, first_pixel_;
  int y_[own_rows], x_[own_rows];
  const T* image_[own_rows];
  float products_[2][2][4] = {};  // of every other step, of two tiles
};

template <typename P>
__device__ void split_convolution(const SplitConvolutionPointers<P>& pointers) {
  extern __shared__ uint4 memory[];
  SplitConvolution<P>(pointers, memory).run();
}

}  // namespace tessera
