// Both gradients of a pointwise convolution that opens a residual block, in one pass over the wide tensors
// beside it: the data gradient, with the residual's gradient added and the mask of the relu that made the
// convolution's input; the sums with which the gradients of the batch normalizations before that relu
// begin; and the weight gradient, whose operands are in shared memory already.
//
// A block works on a slice of the wide channels, keeps its part of the weights and of all sums in registers,
// and goes over the pixels by items of 32, of 16 in 32 bits, with the next such items on their way to shared
// memory.
//
// Where the relu's input is the sum of two normalizations whose x are read anyway, the mask is
// recomputed from these.
//
// P: Element (16 bits, or float, with products in TF32), pixels, narrow (channels of dy), wide (of the
// convolution's input), slice (wide channels of a block), item (pixels), stages (items in shared memory),
// weights (whether the weight gradient is made), norms (how many normalizations, 1 or 2), recompute (whether
// the mask is), epsilon (a function of the normalization).
#pragma once

#include "block_sizes.h"
#include "copies.cuh"
#include "matrix_products.cuh"
#include "normalized.cuh"
#include "pointwise_layout.h"
#include "reduce.cuh"
#include "summed_gradients_pointers.cuh"

namespace tessera {

template <typename P>
class SummedGradients {
 public:
  using T = typename P::Element;
  static constexpr int threads = kPointwiseThreads, warps = threads / 32;
  static constexpr int slices = P::wide / P::slice;
  static constexpr int item = P::item;
  static constexpr int items = (P::pixels + item - 1) / item;
  static constexpr bool whole = P::pixels % item == 0;  // all items
  static constexpr SummedGradientsLayout layout{sizeof(T), item, P::slice, P::narrow, P::norms};
  static constexpr int operands = layout.operands();  // as wide as the slice
  static constexpr int sums = 1 + P::norms;
  static constexpr int columns = P::slice / warps;  // of a warp
  static constexpr int tiles = columns / 8;
  using Columns = DealtColumns<T, tiles>;
  static constexpr int own_columns = Columns::count;  // of a thread
  // In 32 bits, which are transposed number by number, rows are padded; and where a warp has few columns, it
  // makes twice as many of the weight gradient for half of the rows, for fewer reads, and the products in two
  // chains, as an instruction waits for the one before it in its chain.
  static constexpr bool words = layout.padded();
  static constexpr int broader = words && tiles == 2 && P::narrow >= 128 ? 2 : 1;
  static constexpr int gradient_rows = P::narrow / 16 / broader, gradient_tiles = tiles * broader;
  static constexpr int chains = words && tiles * (item / 16) < 4 ? 2 : 1;
  using Wide = Tile<T, P::slice, words>;
  using Narrow = Tile<T, P::narrow, words>;
  static constexpr int wide_elements = layout.wide_elements(), narrow_elements = layout.narrow_elements();
  static constexpr int stage_elements = layout.stage_elements();
  static_assert(wide_elements == item * Wide::pitch && narrow_elements == item * Narrow::pitch);
  static constexpr int chunk = Wide::chunk;
  using Row = Pack<T, own_columns>;

  __device__ SummedGradients(const SummedGradientsPointers<T>& pointers, uint4* memory)
      : pointers_(pointers),
        stages_(reinterpret_cast<T*>(memory)),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        column_(thread_ / 32 * columns),
        slice_(static_cast<int>(blockIdx.x) % slices * P::slice) {}

  __device__ void run() {
    prepare();
    const int step = static_cast<int>(gridDim.x) / slices;
    const int first = static_cast<int>(blockIdx.x) / slices;
    int next = first, stage = 0;
    for (; stage < P::stages - 1; ++stage, next += step) fetch(next, stage);
    for (int now = first; now < items; now += step, next += step) {
      wait_for_copies(P::stages - 2);
      T* arrived = stages_ + (stage + 1 < P::stages ? stage + 1 : 0) * stage_elements;
      if constexpr (P::recompute) make_input(arrived);
      if constexpr (sizeof(T) == 4) round_gradients(arrived);
      __syncthreads();
      fetch(next, stage);
      stage = stage + 1 < P::stages ? stage + 1 : 0;
      work(now, stages_ + stage * stage_elements);
    }
    write_parts(first);
  }

 private:
  __device__ void prepare() {
    if constexpr (P::recompute) {
      for (int n = thread_; n < P::norms * P::slice; n += threads) {
        const int norm = n / P::slice, channel = slice_ + n % P::slice;
        const auto of = [&](const float* const(&both)[2]) {
          return (norm == 0 ? both[0] : both[1])[channel];
        };
        const NormalizedBy own = normalized_by(of(pointers_.scale), of(pointers_.bias), of(pointers_.mean),
                                               of(pointers_.variance), P::epsilon(norm));
        factors()[n] = own.factor;
        offsets()[n] = own.offset;
      }
      __syncthreads();
    }
    const int own = slice_ + column_;
#pragma unroll
    for (int step = 0; step < P::narrow / depth<T>; ++step) {
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        const T* first = pointers_.weight + step * depth<T> * P::wide + own + Columns::of(tile, lane_ / 4);
#pragma unroll
        for (int word = 0; word < 2; ++word)
          weights_[step][tile][word] = operand_of_column(first, P::wide, lane_, word);
      }
    }
#pragma unroll
    for (int norm = 0; norm < P::norms; ++norm)
      means_[norm] = Columns::load_all(pointers_.mean[norm] + own, lane_);
  }

  __device__ void fetch_wide(const T* from, int first, T* to) const {
#pragma unroll
    for (int n = 0; n < item * Wide::chunks / threads; ++n) {
      const int place = thread_ + n * threads, row = place / Wide::chunks, part = place % Wide::chunks;
      const int64 pixel = whole ? first + row : min(first + row, P::pixels - 1);
      copy_ahead(Wide(to).at(row, part), from + pixel * P::wide + (slice_ + part * chunk));
    }
  }

  // Of what this thread has copied.
  __device__ void make_input(T* stage) const {
    T* wide = stage + narrow_elements;
    const int part = thread_ % Wide::chunks;  // of every row
    Pack<float, chunk> factor[P::norms], offset[P::norms];
#pragma unroll
    for (int norm = 0; norm < P::norms; ++norm) {
      factor[norm] = load<chunk>(factors() + norm * P::slice + part * chunk);
      offset[norm] = load<chunk>(offsets() + norm * P::slice + part * chunk);
    }
    // All reads come before the writes, which they do not pass.
    constexpr int rows = item * Wide::chunks / threads;
    const auto row_of = [&](int n) { return thread_ / Wide::chunks + n * (threads / Wide::chunks); };
    Pack<T, chunk> made[rows];
#pragma unroll
    for (int n = 0; n < rows; ++n) {
      float sums[chunk];
#pragma unroll
      for (int norm = 0; norm < P::norms; ++norm) {
        add_normalized(sums, norm == 0,
                       load<chunk>(Wide(wide + (2 + norm) * wide_elements).at(row_of(n), part)), factor[norm],
                       offset[norm]);
      }
      made[n] = as_factors(relu_of<T>(sums));
    }
#pragma unroll
    for (int n = 0; n < rows; ++n) store<Memory::shared>(Wide(wide).at(row_of(n), part), made[n]);
  }

  // Of what this thread has copied, too: once, not by every warp that reads it. The input is read by one
  // warp.
  __device__ void round_gradients(T* dy) const {
    constexpr int count = item * Narrow::chunks / threads;
    static_assert(count * threads == item * Narrow::chunks);
    const auto own = [&](int n) {
      const int place = thread_ + n * threads;
      return Narrow(dy).at(place / Narrow::chunks, place % Narrow::chunks);
    };
    Pack<T, chunk> made[count];
#pragma unroll
    for (int n = 0; n < count; ++n) made[n] = as_factors(load<chunk>(own(n)));
#pragma unroll
    for (int n = 0; n < count; ++n) store<Memory::shared>(own(n), made[n]);
  }

  // After the items.
  __device__ float* factors() const {
    return reinterpret_cast<float*>(stages_ + P::stages * stage_elements);
  }
  __device__ float* offsets() const {
    return factors() + P::norms * P::slice;
  }

  // Rows of dy after the last pixel are zero: they add nothing.
  __device__ void fetch(int index, int stage) const {
    const int first = index * item;
    if (index < items) {
      T* to = stages_ + stage * stage_elements;
#pragma unroll
      for (int n = 0; n < (item * Narrow::chunks + threads - 1) / threads; ++n) {
        const int place = thread_ + n * threads, row = place / Narrow::chunks, part = place % Narrow::chunks;
        if (item * Narrow::chunks % threads != 0 && row >= item) break;
        T* own = Narrow(to).at(row, part);
        if (whole || first + row < P::pixels) {
          copy_ahead(own, pointers_.dy + int64{first + row} * P::narrow + part * chunk);
        } else {
          *reinterpret_cast<uint4*>(own) = uint4{0, 0, 0, 0};
        }
      }
      to += narrow_elements;
      if constexpr (!P::recompute) fetch_wide(pointers_.input, first, to);
      fetch_wide(pointers_.addend, first, to + wide_elements);
#pragma unroll
      for (int norm = 0; norm < P::norms; ++norm)
        fetch_wide(pointers_.x[norm], first, to + (2 + norm) * wide_elements);
    }
    end_of_copies();
  }

  __device__ void work(int index, T* stage) {
    const Narrow dy(stage);
    T* wide = stage + narrow_elements;
    if constexpr (P::weights) add_weights(dy, Wide(wide));
    float products[chains][item / 16][tiles][4] = {};
    make_products(dy, products);
#pragma unroll
    for (int row = 0; row < item / 8; ++row) finish(index * item, row, products[0][row / 2], wide);
  }

  // Of the weight gradient, the warp's first row, a channel of dy, and its first column in the slice.
  __device__ int gradient_row() const {
    return column_ / columns % broader * gradient_rows * 16;
  }
  __device__ int gradient_column() const {
    return column_ / (columns * broader) * (columns * broader);
  }

  __device__ void add_weights(const Narrow& dy, const Wide& input) {
    const int first_row = gradient_row(), first_column = gradient_column();
#pragma unroll
    for (int pixel = 0; pixel < item; pixel += depth<T>) {
      uint32 b[gradient_tiles / 2][4];
#pragma unroll
      for (int pair = 0; pair < gradient_tiles / 2; ++pair)
        input.load_b(b[pair], lane_, pixel, first_column + 16 * pair);
#pragma unroll
      for (int row = 0; row < gradient_rows; ++row) {
        uint32 a[4];
        dy.load_a_transposed(a, lane_, pixel, first_row + 16 * row);
#pragma unroll
        for (int tile = 0; tile < gradient_tiles; ++tile)
          multiply<T>(gradient_[row][tile], a, b[tile / 2][tile % 2 * 2], b[tile / 2][tile % 2 * 2 + 1]);
      }
    }
  }

  // The sums of the chains are those of the first then.
  __device__ void make_products(const Narrow& dy, float (&products)[chains][item / 16][tiles][4]) const {
#pragma unroll
    for (int step = 0; step < P::narrow / depth<T>; ++step) {
#pragma unroll
      for (int part = 0; part < item / 16; ++part) {
        uint32 a[4];
        dy.load_a(a, lane_, part * 16, step * depth<T>);
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile)
          multiply<T>(products[step % chains][part][tile], a, weights_[step][tile][0],
                      weights_[step][tile][1]);
      }
    }
    if constexpr (chains > 1) {
#pragma unroll
      for (int part = 0; part < item / 16; ++part) {
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
          for (int n = 0; n < 4; ++n) products[0][part][tile][n] += products[1][part][tile][n];
        }
      }
    }
  }

  // The columns of this thread in a row of a wide operand.
  __device__ Row own(T* operand, int row) const {
    return Columns::load_of_tile(Wide(operand), lane_, row, column_);
  }

  __device__ void finish(int first, int part, const float (&products)[tiles][4], T* wide) {
    const int row = Wide::row_of(lane_ / 4) + 8 * part;
    if (!whole && first + row >= P::pixels) return;
    const Row mask = own(wide, row), addend = own(wide + wide_elements, row);
    Row result;
#pragma unroll
    for (int v = 0; v < own_columns; ++v) {
      const float sum = products[v / 2][2 * (part % 2) + v % 2] + widen(addend.at[v]);
      result.at[v] = narrow<T>(widen(mask.at[v]) > 0 ? sum : 0);
      sums_[0][v] += widen(result.at[v]);
    }
    Columns::store_all(pointers_.result + int64{first + row} * P::wide + slice_ + column_, lane_, result);
#pragma unroll
    for (int norm = 0; norm < P::norms; ++norm) {
      const Row x = own(wide + (2 + norm) * wide_elements, row);
#pragma unroll
      for (int v = 0; v < own_columns; ++v)
        sums_[1 + norm][v] += widen(result.at[v]) * (widen(x.at[v]) - means_[norm].at[v]);
    }
  }

  __device__ void write_weight_parts(int block) const {
    float* own = pointers_.weight_parts + int64{block} * (P::narrow * P::wide) + gradient_row() * P::wide +
                 slice_ + gradient_column();
#pragma unroll
    for (int row = 0; row < gradient_rows; ++row) {
#pragma unroll
      for (int tile = 0; tile < gradient_tiles; ++tile) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          *reinterpret_cast<float2*>(own + (row * 16 + lane_ / 4 + 8 * part) * P::wide + tile * 8 +
                                     lane_ % 4 * 2) =
              float2{gradient_[row][tile][2 * part], gradient_[row][tile][2 * part + 1]};
        }
      }
    }
  }

  __device__ void write_parts(int block) const {
    if constexpr (P::weights) write_weight_parts(block);
    const int blocks = static_cast<int>(gridDim.x) / slices;
#pragma unroll
    for (int sum = 0; sum < sums; ++sum) {
      float* row = pointers_.sum_parts + (int64{sum} * blocks + block) * P::wide + slice_ + column_;
#pragma unroll
      for (int v = 0; v < own_columns; ++v) {
        const float value = sum_of_rows(sums_[sum][v]);
        if (lane_ < 4) row[Columns::at(lane_, v)] = value;
      }
    }
  }

  const SummedGradientsPointers<T>& pointers_;
  T* stages_;
  int thread_, lane_;
  int column_;  // the warp's first, in the slice
  int slice_;   // the block's first wide channel
  uint32 weights_[P::narrow / depth<T>][tiles][2];
  float gradient_[P::weights ? gradient_rows : 1][gradient_tiles][4] = {};  // of the weights
  Pack<float, own_columns> means_[P::norms];
  float sums_[sums][own_columns] = {};
};

template <typename P>
__device__ void summed_gradients(const SummedGradientsPointers<typename P::Element>& pointers) {
  extern __shared__ uint4 memory[];
  SummedGradients<P>(pointers, memory).run();
}

}  // namespace tessera
