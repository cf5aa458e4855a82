// A pointwise convolution with what may stand before it and after it.
//
// In front: the rest of one or two batch normalizations whose statistics are known, the sum with a residual,
// and the relu, y = relu(x factor + offset [+ ...]). y is written for its other readers, and the convolution
// takes it from shared memory, in place of x there. After: the sums of the result and of its squares, with
// which the next normalization begins; or a bias, the sum with a residual, and the relu.
//
// A block keeps the weights in registers and goes over the pixels by items, with the next such items on their
// way to shared memory. Values round where they would in memory.
//
// P: Element (16 bits, or float, with products in TF32), pixels, inputs, outputs, slice (outputs of a block),
// teams (of warps, which share the pixels), item (pixels), stages (items in shared memory), norms (how many
// normalizations, 0 to 2), prologue_residual (whether one is added to them), keeps (whether y is written),
// statistics, bias, residual, relu (after the result).
#pragma once

#include "block_sizes.h"
#include "copies.cuh"
#include "matrix_products.cuh"
#include "normalized.cuh"
#include "pointwise_layout.h"
#include "reduce.cuh"

namespace tessera {

template <typename T>
struct PointwiseConvolutionPointers {
  const T* x[2];               // [pixels, inputs], of each normalization
  const T* prologue_residual;  // [pixels, inputs]
  const float* mean[2];        // [inputs]
  const float* factor[2];      // [inputs]
  const float* bias[2];        // [inputs]
  const T* weight;             // [outputs, inputs]
  const T* bias_of_result;     // [outputs]
  const T* residual;           // [pixels, outputs]
  T* result;                   // [pixels, outputs]
  T* y;                        // [pixels, inputs]
  float* parts;                // [2, chunks, outputs]: sums of the result and of its squares, to be added up
};

template <typename P>
class PointwiseConvolution {
 public:
  using T = typename P::Element;
  static constexpr int threads = kPointwiseThreads, warps = threads / 32;
  static constexpr int item = P::item;
  static constexpr int items = (P::pixels + item - 1) / item;
  static constexpr int slices = P::outputs / P::slice;
  static constexpr int groups = warps / P::teams;    // of columns, one for each warp of a team
  static constexpr int columns = P::slice / groups;  // outputs of a warp
  static constexpr int tiles = columns / 8;
  using Columns = DealtColumns<T, tiles>;
  static constexpr int own_columns = Columns::count;          // of a thread
  static constexpr int parts_of_item = item / 16 / P::teams;  // of 16 pixels, of a warp
  static constexpr int steps = P::inputs / depth<T>;
  static constexpr PointwiseConvolutionLayout layout{
      sizeof(T), item, P::inputs, P::slice, P::norms, P::prologue_residual, P::residual};
  static constexpr int operands = layout.operands();
  using Input = Tile<T, P::inputs, true>;
  static constexpr int chunk = Input::chunk, chunks = Input::chunks;
  static constexpr int own_chunks = item * chunks / threads;
  static constexpr int operand_elements = layout.operand_elements();
  using Residual = Tile<T, P::slice, false>;
  static constexpr int stage_elements = layout.stage_elements();
  using Row = Pack<T, own_columns>;
  static_assert(threads % chunks == 0 && own_chunks > 0 && Input::pitch == layout.pitch());
  // Each pixel of an item and each output of a slice is one warp's, in whole tiles.
  static_assert(groups * P::teams == warps && columns * groups == P::slice && tiles * 8 == columns &&
                parts_of_item * P::teams * 16 == item && slices * P::slice == P::outputs);

  __device__ PointwiseConvolution(const PointwiseConvolutionPointers<T>& pointers, uint4* memory)
      : pointers_(pointers),
        stages_(reinterpret_cast<T*>(memory)),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        team_(thread_ / 32 / groups),
        slice_(static_cast<int>(blockIdx.x) % slices),
        column_(thread_ / 32 % groups * columns),
        output_(slice_ * P::slice + column_) {}

  __device__ void run() {
    prepare();
    const int step = static_cast<int>(gridDim.x) / slices;
    const int first = static_cast<int>(blockIdx.x) / slices;
    int next = first, stage = 0;
    for (; stage < P::stages - 1; ++stage, next += step) fetch(next, stage);
    stage = 0;
    for (int now = first; now < items; now += step, next += step) {
      T* own = stages_ + stage * stage_elements;
      wait_for_copies(P::stages - 2);
      if constexpr (P::norms > 0) {
        normalize(now, own);
      } else if constexpr (sizeof(T) == 4) {
        round_input(own);
      }
      __syncthreads();
      // Every thread is done with the item before, whose place the next one takes.
      fetch(next, stage > 0 ? stage - 1 : P::stages - 1);
      make_result(now, own);
      stage = stage + 1 < P::stages ? stage + 1 : 0;
    }
    if constexpr (P::statistics) write_sums(first);
  }

 private:
  __device__ void prepare() {
    if constexpr (P::bias) bias_ = Columns::load_all(pointers_.bias_of_result + output_, lane_);
    const int channel = thread_ % chunks * chunk;
#pragma unroll
    for (int norm = 0; norm < P::norms; ++norm) {
      const auto mean = load<chunk>(pointers_.mean[norm] + channel),
                 bias = load<chunk>(pointers_.bias[norm] + channel);
      factors_[norm] = load<chunk>(pointers_.factor[norm] + channel);
#pragma unroll
      for (int v = 0; v < chunk; ++v) offsets_[norm].at[v] = bias.at[v] - mean.at[v] * factors_[norm].at[v];
    }
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      const T* row = pointers_.weight + (output_ + Columns::of(tile, lane_ / 4)) * P::inputs;
#pragma unroll
      for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int word = 0; word < 2; ++word)
          weights_[step][tile][word] = operand_of_row(row + step * depth<T>, lane_, word);
      }
    }
  }

  // Each thread copies what it normalizes later.
  __device__ void fetch(int index, int stage) const {
    if (index < items) {
      T* to = stages_ + stage * stage_elements;
#pragma unroll
      for (int n = 0; n < own_chunks; ++n) {
        const int place = thread_ + n * threads, row = place / chunks, part = place % chunks;
        const int64 from = int64{min(index * item + row, P::pixels - 1)} * P::inputs + part * chunk;
        copy_ahead(Input(to).at(row, part), pointers_.x[0] + from);
        if constexpr (P::norms > 1)
          copy_ahead(Input(to + operand_elements).at(row, part), pointers_.x[1] + from);
        if constexpr (P::prologue_residual)
          copy_ahead(Input(to + P::norms * operand_elements).at(row, part),
                     pointers_.prologue_residual + from);
      }
      if constexpr (P::residual) {
        const Residual residual(to + operands * operand_elements);
#pragma unroll
        for (int n = 0; n < item * Residual::chunks / threads; ++n) {
          const int place = thread_ + n * threads, row = place / Residual::chunks,
                    part = place % Residual::chunks;
          const int64 pixel = min(index * item + row, P::pixels - 1);
          copy_ahead(residual.at(row, part),
                     pointers_.residual + pixel * P::outputs + slice_ * P::slice + part * chunk);
        }
      }
    }
    end_of_copies();
  }

  __device__ void normalize(int index, T* stage) const {
#pragma unroll
    for (int n = 0; n < own_chunks; ++n) {
      const int place = thread_ + n * threads, row = place / chunks, part = place % chunks;
      const int pixel = index * item + row;
      float sums[chunk];
#pragma unroll
      for (int norm = 0; norm < P::norms; ++norm) {
        add_normalized(sums, norm == 0, load<chunk>(Input(stage + norm * operand_elements).at(row, part)),
                       factors_[norm], offsets_[norm]);
      }
      if constexpr (P::prologue_residual) {
        const auto prologue_residual = load<chunk>(Input(stage + P::norms * operand_elements).at(row, part));
#pragma unroll
        for (int v = 0; v < chunk; ++v) sums[v] += widen(prologue_residual.at[v]);
      }
      const Pack<T, chunk> y = relu_of<T>(sums);
      store<Memory::shared>(Input(stage).at(row, part), as_factors(y));
      if (P::keeps && pixel < P::pixels && slice_ == 0)
        store<Memory::global>(pointers_.y + int64{pixel} * P::inputs + part * chunk, y);
    }
  }

  // What this thread has copied.
  __device__ void round_input(T* stage) const {
#pragma unroll
    for (int n = 0; n < own_chunks; ++n) {
      const int place = thread_ + n * threads;
      T* own = Input(stage).at(place / chunks, place % chunks);
      store<Memory::shared>(own, as_factors(load<chunk>(own)));
    }
  }

  __device__ void make_result(int index, T* stage) {
    const Input y(stage);
    float products[parts_of_item][tiles][4] = {};
#pragma unroll
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int part = 0; part < parts_of_item; ++part) {
        uint32 a[4];
        y.load_a(a, lane_, (team_ * parts_of_item + part) * 16, step * depth<T>);
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile)
          multiply<T>(products[part][tile], a, weights_[step][tile][0], weights_[step][tile][1]);
      }
    }
#pragma unroll
    for (int part = 0; part < 2 * parts_of_item; ++part) {
      const int row = team_ * parts_of_item * 16 + Input::row_of(lane_ / 4) + 8 * part;
      const int64 pixel = index * item + row;
      if (pixel >= P::pixels) continue;
      Row residual;
      if constexpr (P::residual)
        residual = Columns::load_of_tile(Residual(stage + operands * operand_elements), lane_, row, column_);
      Row result;
#pragma unroll
      for (int v = 0; v < own_columns; ++v) {
        float value = products[part / 2][v / 2][2 * (part % 2) + v % 2];
        if constexpr (P::bias) value += widen(bias_.at[v]);
        if constexpr (P::residual) value += widen(residual.at[v]);
        if constexpr (P::relu) value = op_relu(value);
        result.at[v] = narrow<T>(value);
        if constexpr (P::statistics) {
          sums_[v] += widen(result.at[v]);
          squares_[v] += widen(result.at[v]) * widen(result.at[v]);
        }
      }
      Columns::store_all(pointers_.result + pixel * P::outputs + output_, lane_, result);
    }
  }

  __device__ void write_sums(int block) const {
    const int chunks_of_sums = static_cast<int>(gridDim.x) / slices * P::teams;
    float* row = pointers_.parts + int64{block * P::teams + team_} * P::outputs + output_;
#pragma unroll
    for (int v = 0; v < own_columns; ++v) {
      const float sum = sum_of_rows(sums_[v]), square = sum_of_rows(squares_[v]);
      if (lane_ >= 4) continue;
      const int column = Columns::at(lane_, v);
      row[column] = sum;
      row[int64{chunks_of_sums} * P::outputs + column] = square;
    }
  }

  const PointwiseConvolutionPointers<T>& pointers_;
  T* stages_;
  int thread_, lane_, team_, slice_;
  int column_;  // the warp's first output in the slice
  int output_;  // and in all
  Row bias_;
  Pack<float, chunk> factors_[P::norms > 0 ? P::norms : 1], offsets_[P::norms > 0 ? P::norms : 1];
  uint32 weights_[steps][tiles][2];
  float sums_[own_columns] = {};
  float squares_[own_columns] = {};
};

template <typename P>
__device__ void pointwise_convolution(const PointwiseConvolutionPointers<typename P::Element>& pointers) {
  extern __shared__ uint4 memory[];
  PointwiseConvolution<P>(pointers, memory).run();
}

}  // namespace tessera
