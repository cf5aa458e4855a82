// A convolution whose channels are each by themselves, and what may follow it: a bias, the sum with a
// residual, an activation. Bound by memory: each number that is read is multiplied a few times.
//
// A thread makes `rows` by `columns` results of `vector` channels, and reads once what their windows share,
// a line at a time: without branches, so that many reads are on their way at once. Beside the image are
// zeros. A block has the weights of its slice of channels in shared memory, those of an element of the window
// side by side, and goes over the results by such items; neighboring threads have neighboring channels.
//
// P: Element, images, height, width, channels, out_height, out_width, window_rows, window_columns, stride_y,
// stride_x, padding_top, padding_left, vector, rows, columns, slice (channels of a block, whole vectors),
// items_at_once (of a block), bias, residual, and the activation: float end(float).
#pragma once

#include "pairs.cuh"
#include "primitives.cuh"

namespace tessera {

template <typename P>
struct DepthwisePointers {
  using T = typename P::Element;
  const T* x;         // [images, height, width, channels]
  const T* weight;    // [channels, window_rows, window_columns, 1]
  const T* bias;      // [channels]
  const T* residual;  // as the result
  T* result;          // [images, out_height, out_width, channels]
};

template <typename P>
class Depthwise {
 public:
  using T = typename P::Element;
  static constexpr int taps = P::window_rows * P::window_columns;
  static constexpr int vectors = P::slice / P::vector;  // of a block
  static constexpr int bands = (P::out_height + P::rows - 1) / P::rows;
  static constexpr int segments = (P::out_width + P::columns - 1) / P::columns;
  static constexpr int items = P::images * bands * segments;
  static constexpr int rows_read = (P::rows - 1) * P::stride_y + P::window_rows;
  static constexpr int columns_read = (P::columns - 1) * P::stride_x + P::window_columns;
  using Vector = Pack<T, P::vector>;

  __device__ Depthwise(const DepthwisePointers<P>& pointers, T* weights)
      : pointers_(pointers),
        weights_(weights),
        own_(static_cast<int>(threadIdx.x) % vectors * P::vector),
        channel_(static_cast<int>(blockIdx.y) * P::slice + own_) {}

  __device__ void run() {
    read_weights();
    __syncthreads();
    if (channel_ >= P::channels) return;
    if constexpr (P::bias) widen_all(bias_, load<P::vector>(pointers_.bias + channel_));
    const int step = static_cast<int>(gridDim.x) * P::items_at_once;
    int item = static_cast<int>(blockIdx.x) * P::items_at_once + static_cast<int>(threadIdx.x) / vectors;
    for (; item < items; item += step) make(item);
  }

 private:
  __device__ void read_weights() const {
    const int first = static_cast<int>(blockIdx.y) * P::slice;
    const int count = min(P::slice, P::channels - first) * taps;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
      weights_[i % taps * P::slice + i / taps] = pointers_.weight[int64{first} * taps + i];
  }

  __device__ void make(int item) const {
    const int column = item % segments * P::columns;
    const int row = item / segments % bands * P::rows;
    const int image = item / segments / bands;
    float sums[P::rows][P::columns][P::vector];
#pragma unroll
    for (int i = 0; i < P::rows; ++i) {
#pragma unroll
      for (int j = 0; j < P::columns; ++j) {
#pragma unroll
        for (int v = 0; v < P::vector; ++v) sums[i][j][v] = P::bias ? bias_[v] : 0;
      }
    }
    const int top = row * P::stride_y - P::padding_top;
    const int left = column * P::stride_x - P::padding_left;
    const T* x = pointers_.x + (int64{image} * P::height + top) * P::width * P::channels + channel_;
#pragma unroll
    for (int r = 0; r < rows_read; ++r, x += P::width * P::channels) {
      const bool on_image = top + r >= 0 && top + r < P::height;
      Vector line[columns_read];
#pragma unroll
      for (int c = 0; c < columns_read; ++c) {
        line[c] = Vector{};
        if (on_image && left + c >= 0 && left + c < P::width)
          line[c] = load<P::vector>(x + (left + c) * P::channels);
      }
      add_line(r, line, sums);
    }
    store_all(image, row, column, sums);
  }

  // Line r of those that the item reads.
  __device__ void add_line(int r, const Vector (&line)[columns_read],
                           float (&sums)[P::rows][P::columns][P::vector]) const {
#pragma unroll
    for (int c = 0; c < columns_read; ++c) {
      float values[P::vector];
      widen_all(values, line[c]);
#pragma unroll
      for (int i = 0; i < P::rows; ++i) {
        const int a = r - i * P::stride_y;
        if (a < 0 || a >= P::window_rows) continue;
#pragma unroll
        for (int j = 0; j < P::columns; ++j) {
          const int b = c - j * P::stride_x;
          if (b < 0 || b >= P::window_columns) continue;
          float factors[P::vector];
          widen_all(factors, load<P::vector>(weights_ + (a * P::window_columns + b) * P::slice + own_));
#pragma unroll
          for (int v = 0; v < P::vector; ++v) sums[i][j][v] += values[v] * factors[v];
        }
      }
    }
  }

  __device__ void store_all(int image, int row, int column,
                            float (&sums)[P::rows][P::columns][P::vector]) const {
#pragma unroll
    for (int i = 0; i < P::rows; ++i) {
#pragma unroll
      for (int j = 0; j < P::columns; ++j) {
        if (row + i >= P::out_height || column + j >= P::out_width) continue;
        const int64 pixel = (int64{image} * P::out_height + row + i) * P::out_width + column + j;
        const int64 place = pixel * P::channels + channel_;
        float residual[P::vector];
        if constexpr (P::residual) widen_all(residual, load<P::vector>(pointers_.residual + place));
#pragma unroll
        for (int v = 0; v < P::vector; ++v) {
          if constexpr (P::residual) sums[i][j][v] += residual[v];
          sums[i][j][v] = P::end(sums[i][j][v]);
        }
        store<Memory::global>(pointers_.result + place, narrow_all<T>(sums[i][j]));
      }
    }
  }

  const DepthwisePointers<P>& pointers_;
  T* weights_;   // [taps, slice]
  int own_;      // the thread's first channel in the slice
  int channel_;  // and in all
  float bias_[P::vector];
};

template <typename P>
__device__ void depthwise_convolution(const DepthwisePointers<P>& pointers) {
  __shared__ uint4 memory[(Depthwise<P>::taps * P::slice * sizeof(typename P::Element) + 15) / 16];
  Depthwise<P>(pointers, reinterpret_cast<typename P::Element*>(memory)).run();
}

}  // namespace tessera
