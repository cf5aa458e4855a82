// Both gradients of a pointwise convolution whose result a batch normalization took: the gradient of that
// result, d = a * dz + b * x + c with numbers of each channel, is made in shared memory, rounded as it would
// be in memory, and used there for the data gradient d W and for the weight gradient d^T u, u being the
// convolution's input. The widest tensors are read once, and d, as wide as they are, is never written.
//
// A block keeps the sums of the whole weight gradient in registers and goes over the pixels 32 at a time,
// half as many of 32 bits, with the next such items on their way to shared memory.
//
// P: Element (16 bits, or float, with products in TF32), pixels, wide (channels of dz and x), narrow
// (channels of u), item (pixels), stages (items in shared memory), recompute (whether u is), epsilon (of
// that normalization).
#pragma once

#include "block_sizes.h"
#include "copies.cuh"
#include "matrix_products.cuh"
#include "normalized.cuh"
#include "pointwise_layout.h"
#include "reduce.cuh"

namespace tessera {

template <typename T>
struct NormalizedGradientsPointers {
  const T* dz;              // [pixels, wide]
  const T* x;               // [pixels, wide]
  const T* input;           // [pixels, narrow]: u, or what it is made of
  const T* weight;          // [wide, narrow]
  const float* factors[3];  // [wide] each
  const float* scale;       // [narrow], as the next three: of the normalization that makes u
  const float* bias;
  const float* mean;
  const float* variance;
  T* result;     // [pixels, narrow]
  float* parts;  // [blocks, wide, narrow], to be added up to the weight gradient
};

template <typename P>
class NormalizedGradients {
 public:
  using T = typename P::Element;
  static constexpr int threads = kPointwiseThreads, warps = threads / 32;
  static constexpr int chunk = chunk_elements<T>;
  static constexpr int item = P::item;
  static constexpr int items = (P::pixels + item - 1) / item;
  static constexpr bool whole = P::pixels % item == 0;  // all items
  static constexpr int wide_chunks = P::wide / chunk, narrow_chunks = P::narrow / chunk;
  static constexpr int own_chunks = item * wide_chunks / threads;
  static constexpr int channels = P::wide / warps;  // of the weight gradient, of a warp
  static constexpr int weight_tiles = channels / 16, narrow_tiles = P::narrow / 8;
  static constexpr int steps = P::wide / depth<T>;                     // of the data gradient
  static constexpr int parts_of_item = item / 16;                      // of which a warp makes one
  static constexpr int columns = P::narrow / (warps / parts_of_item);  // of the data gradient, of a warp
  static constexpr int result_tiles = columns / 8;
  using Columns = DealtColumns<T, result_tiles>;
  static_assert(threads % wide_chunks == 0 && channels % 16 == 0 && columns % 8 == 0 &&
                threads == item * narrow_chunks);
  using Wide = Tile<T, P::wide, true>;
  using Narrow = Tile<T, P::narrow, true>;
  static constexpr NormalizedGradientsLayout layout{sizeof(T), item, P::wide, P::narrow};
  static constexpr int stage_elements = layout.stage_elements();
  static constexpr int gradient_elements = layout.gradient_elements();
  static_assert(stage_elements == item * (2 * P::wide + Narrow::pitch) &&
                gradient_elements == item * Wide::pitch);

  __device__ NormalizedGradients(const NormalizedGradientsPointers<T>& pointers, uint4* memory)
      : pointers_(pointers),
        stages_(reinterpret_cast<T*>(memory)),
        gradients_(stages_ + P::stages * stage_elements),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        warp_(thread_ / 32),
        column_(warp_ / parts_of_item * columns) {}

  __device__ void run() {
    prepare();
    const int step = static_cast<int>(gridDim.x);
    int next = static_cast<int>(blockIdx.x);
    for (int stage = 0; stage < P::stages - 1; ++stage, next += step) fetch(next, stage);
    int stage = 0, buffer = 0;
    for (int now = static_cast<int>(blockIdx.x); now < items; now += step, next += step) {
      wait_for_copies(P::stages - 2);
      normalize(now, stages_ + stage * stage_elements, gradients_ + buffer * gradient_elements);
      if constexpr (P::recompute || sizeof(T) == 4)
        make_input(Narrow(stages_ + stage * stage_elements + 2 * item * P::wide));
      __syncthreads();
      fetch(next, stage > 0 ? stage - 1 : P::stages - 1);
      const Wide gradients(gradients_ + buffer * gradient_elements);
      add_weights(gradients, Narrow(stages_ + stage * stage_elements + 2 * item * P::wide));
      make_result(now, gradients);
      stage = stage + 1 < P::stages ? stage + 1 : 0;
      buffer = 1 - buffer;
    }
    write_parts();
  }

 private:
  __device__ void prepare() {
    if constexpr (P::recompute) {
      for (int channel = thread_; channel < P::narrow; channel += threads) {
        const NormalizedBy own =
            normalized_by(pointers_.scale[channel], pointers_.bias[channel], pointers_.mean[channel],
                          pointers_.variance[channel], P::epsilon);
        factors_of_input()[channel] = own.factor;
        offsets_of_input()[channel] = own.offset;
      }
      __syncthreads();
    }
    const int first = thread_ % wide_chunks * chunk;
#pragma unroll
    for (int n = 0; n < 3; ++n) factors_[n] = load<chunk>(pointers_.factors[n] + first);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int tile = 0; tile < result_tiles; ++tile) {
        const T* from =
            pointers_.weight + step * depth<T> * P::narrow + column_ + Columns::of(tile, lane_ / 4);
#pragma unroll
        for (int word = 0; word < 2; ++word)
          weights_[step][tile][word] = operand_of_column(from, P::narrow, lane_, word);
      }
    }
  }

  // After the last pixel the last one is read again.
  __device__ static int pixel_of(int pixel) {
    return whole ? pixel : min(pixel, P::pixels - 1);
  }

  // Each thread copies of dz and x what it normalizes later.
  __device__ void fetch(int index, int stage) {
    T* to = stages_ + stage * stage_elements;
    const int first = index * item;
    if (index < items) {
#pragma unroll
      for (int n = 0; n < own_chunks; ++n) {
        const int place = thread_ + n * threads;
        const int row = place / wide_chunks;
        const int64 from = int64{pixel_of(first + row)} * P::wide + place % wide_chunks * chunk;
        copy_ahead(to + place * chunk, pointers_.dz + from);
        copy_ahead(to + item * P::wide + place * chunk, pointers_.x + from);
      }
      const int row = thread_ / narrow_chunks, part = thread_ % narrow_chunks;
      copy_ahead(Narrow(to + 2 * item * P::wide).at(row, part),
                 pointers_.input + int64{pixel_of(first + row)} * P::narrow + part * chunk);
    }
    end_of_copies();
  }

  // What this thread has copied.
  __device__ void make_input(const Narrow& input) const {
    const int row = thread_ / narrow_chunks, part = thread_ % narrow_chunks;
    Pack<T, chunk> own = load<chunk>(input.at(row, part));
    if constexpr (P::recompute) {
      float u[chunk];
      add_normalized(u, true, own, load<chunk>(factors_of_input() + part * chunk),
                     load<chunk>(offsets_of_input() + part * chunk));
      own = relu_of<T>(u);
    }
    store<Memory::shared>(input.at(row, part), as_factors(own));
  }

  // After the tiles.
  __device__ float* factors_of_input() const {
    return reinterpret_cast<float*>(gradients_ + 2 * gradient_elements);
  }
  __device__ float* offsets_of_input() const {
    return factors_of_input() + P::narrow;
  }

  // Rows after the last pixel are zero: they add nothing.
  __device__ void normalize(int index, const T* from, T* to) const {
#pragma unroll
    for (int n = 0; n < own_chunks; ++n) {
      const int place = thread_ + n * threads;
      const int row = place / wide_chunks;
      const auto dz = load<chunk>(from + place * chunk),
                 x = load<chunk>(from + item * P::wide + place * chunk);
      const bool inside = whole || index * item + row < P::pixels;
      Pack<T, chunk> gradient;
#pragma unroll
      for (int v = 0; v < chunk; ++v) {
        const float value =
            factors_[0].at[v] * widen(dz.at[v]) + factors_[1].at[v] * widen(x.at[v]) + factors_[2].at[v];
        gradient.at[v] = narrow<T>(inside ? value : 0);
      }
      store<Memory::shared>(Wide(to).at(row, place % wide_chunks), as_factors(gradient));
    }
  }

  __device__ void add_weights(const Wide& gradients, const Narrow& input) {
#pragma unroll
    for (int pixel = 0; pixel < item; pixel += depth<T>) {
      uint32 a[weight_tiles][4];
#pragma unroll
      for (int tile = 0; tile < weight_tiles; ++tile)
        gradients.load_a_transposed(a[tile], lane_, pixel, warp_ * channels + 16 * tile);
#pragma unroll
      for (int pair = 0; pair < narrow_tiles / 2; ++pair) {
        uint32 b[4];
        input.load_b(b, lane_, pixel, 16 * pair);
#pragma unroll
        for (int tile = 0; tile < weight_tiles; ++tile) {
          multiply<T>(sums_[tile][2 * pair], a[tile], b[0], b[1]);
          multiply<T>(sums_[tile][2 * pair + 1], a[tile], b[2], b[3]);
        }
      }
    }
  }

  __device__ void make_result(int index, const Wide& gradients) const {
    const int part = warp_ % parts_of_item * 16;
    float products[result_tiles][4] = {};
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      uint32 a[4];
      gradients.load_a(a, lane_, part, step * depth<T>);
#pragma unroll
      for (int tile = 0; tile < result_tiles; ++tile)
        multiply<T>(products[tile], a, weights_[step][tile][0], weights_[step][tile][1]);
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int pixel = index * item + part + Wide::row_of(lane_ / 4) + 8 * row;
      if (!whole && pixel >= P::pixels) continue;
      Pack<T, Columns::count> result;
#pragma unroll
      for (int v = 0; v < Columns::count; ++v) result.at[v] = narrow<T>(products[v / 2][2 * row + v % 2]);
      Columns::store_all(pointers_.result + int64{pixel} * P::narrow + column_, lane_, result);
    }
  }

  __device__ void write_parts() const {
    float* own = pointers_.parts + int64{blockIdx.x} * (P::wide * P::narrow);
#pragma unroll
    for (int tile = 0; tile < weight_tiles; ++tile) {
#pragma unroll
      for (int n = 0; n < narrow_tiles; ++n) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const int channel = warp_ * channels + tile * 16 + lane_ / 4 + 8 * row;
          *reinterpret_cast<float2*>(own + channel * P::narrow + n * 8 + lane_ % 4 * 2) =
              float2{sums_[tile][n][2 * row], sums_[tile][n][2 * row + 1]};
        }
      }
    }
  }

  const NormalizedGradientsPointers<T>& pointers_;
  T* stages_;
  T* gradients_;  // d
  int thread_, lane_, warp_;
  int column_;  // of the data gradient, the warp's first
  Pack<float, chunk> factors_[3];
  uint32 weights_[steps][result_tiles][2];
  float sums_[weight_tiles][narrow_tiles][4] = {};
};

template <typename P>
__device__ void normalized_gradients(const NormalizedGradientsPointers<typename P::Element>& pointers) {
  extern __shared__ uint4 memory[];
  NormalizedGradients<P>(pointers, memory).run();
}

}  // namespace tessera
