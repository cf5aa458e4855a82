// Convolutions of images with few channels, such as the first one of a network, on the Tensor Cores, and
// their weight gradients. Libraries pad the channels to what their tiles take; here a row of the window, all
// channels of its columns, is one run of shared memory, so that what is multiplied with zero is a tenth.
//
// How its rows lie in shared memory: few_channel_layout.h. Eight elements of a run are a unit: half of what
// one instruction multiplies of 16-bit numbers, all of what it multiplies of fp32 ones, which it takes as
// TF32.
//
// P: Element (16 bits, or float to be rounded to TF32), Image (the type of x: Element, or float that is
// rounded to 16 bits on its way to shared memory), threads (of a block), images, height, width, channels,
// out_height, out_width, outputs, window_rows, window_columns, stride, padding_top, padding_left, item_rows
// (rows of the result that a block works on at a time).
#pragma once

#include "copies.cuh"
#include "few_channel_layout.h"
#include "few_channel_products.cuh"
#include "reduce.cuh"

namespace tessera {

template <typename P>
struct FewChannels {
  static constexpr FewChannelLayout layout{P::channels,  P::width,        P::outputs,
                                           P::out_width, P::window_rows,  P::window_columns,
                                           P::stride,    P::padding_left, P::item_rows};
  static constexpr int warps = P::threads / 32;
  static constexpr int vector = 16 / sizeof(typename P::Element);  // elements of one access
  static constexpr int lead = layout.lead();
  static constexpr int start = layout.start();
  static constexpr int first = layout.first();
  static constexpr int run = layout.run();
  static constexpr int run_units = layout.run_units();
  static constexpr int step = layout.step();
  static constexpr int pitch = layout.pitch();
  static constexpr int rows = layout.rows();
  static constexpr int item_elements = layout.item_elements();
  static constexpr int row_chunks = P::width * P::channels / vector;  // accesses for a row of x
  static constexpr int chunks = rows * row_chunks;
  static constexpr int units = layout.units();
  static constexpr int items_of_image = (P::out_height + P::item_rows - 1) / P::item_rows;
  static constexpr int items = P::images * items_of_image;

  // Where a unit of the window lies, from the place of its first one.
  static __device__ constexpr int offset_of(int unit) {
    return unit < units ? unit / run_units * pitch + unit % run_units * 8 : 0;
  }
  // Where a chunk of the rows of x lies in shared memory.
  static __device__ constexpr int place_of_chunk(int chunk) {
    return chunk / row_chunks * pitch + start + chunk % row_chunks * vector;
  }
};

// Rounds 16 bytes of shared memory to TF32. The thread whose copy they were does so once, as each element is
// read many times; 16-bit numbers stay as they are.
template <typename T>
__device__ void round_factors(T*) {}
template <>
__device__ inline void round_factors<float>(float* at) {
  auto* words = reinterpret_cast<uint4*>(at);
  const float4 four = *reinterpret_cast<const float4*>(at);
  *words = uint4{rounded_to_tf32(four.x), rounded_to_tf32(four.y), rounded_to_tf32(four.z),
                 rounded_to_tf32(four.w)};
}

// Rounds and writes the rows of an item, of which those from row `top` of the image on exist, a few accesses
// of a thread at a time: all are read before the first is written.
template <typename P>
__device__ void write_rounded_rows(const float* first, int top, typename P::Element* rows) {
  using F = FewChannels<P>;
  constexpr int together = 4;
  for (int base = static_cast<int>(threadIdx.x); base < F::chunks; base += together * P::threads) {
    Pack<float, F::vector> wide[together] = {};
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const int chunk = base + i * P::threads, row = top + chunk / F::row_chunks;
      if (chunk < F::chunks && row >= 0 && row < P::height)
        wide[i] = load<F::vector>(first + chunk * F::vector);
    }
#pragma unroll
    for (int i = 0; i < together; ++i) {
      Pack<typename P::Element, F::vector> rounded;
#pragma unroll
      for (int v = 0; v < F::vector; ++v) rounded.at[v] = narrow<typename P::Element>(wide[i].at[v]);
      const int chunk = base + i * P::threads;
      if (chunk < F::chunks) store<Memory::shared>(rows + F::place_of_chunk(chunk), rounded);
    }
  }
}

// Starts to read the rows of x that an item needs.
template <typename P>
__device__ void fetch_rows(const typename P::Image* x, int item, typename P::Element* rows) {
  using F = FewChannels<P>;
  const int image = item / F::items_of_image;
  const int top = item % F::items_of_image * P::item_rows * P::stride - P::padding_top;
  const auto* first = x + (int64{image} * P::height + top) * (P::width * P::channels);
  if constexpr (sizeof(typename P::Image) > sizeof(typename P::Element)) {
    write_rounded_rows<P>(first, top, rows);
  } else {
    for (int n = static_cast<int>(threadIdx.x); n < F::chunks; n += P::threads) {
      const int row = top + n / F::row_chunks;
      copy_ahead_or_zero(rows + F::place_of_chunk(n), first + n * F::vector, row >= 0 && row < P::height);
    }
  }
}
// Once the copies of this thread have arrived.
template <typename P>
__device__ void round_rows(typename P::Element* rows) {
  using F = FewChannels<P>;
  if constexpr (sizeof(typename P::Element) == 4)
    for (int n = static_cast<int>(threadIdx.x); n < F::chunks; n += P::threads)
      round_factors(rows + F::place_of_chunk(n));
}

// P, beside: tile_pixels (of a warp at a time), statistics (also sums of the result and of its squares), bias
// and the activation before the result is stored: float end(float). A warp makes tile_pixels pixels by 32
// outputs at a time.
template <typename P>
class FewChannelConvolution {
 public:
  using T = typename P::Element;
  using F = FewChannels<P>;
  using Product = FewChannelProduct<T>;
  static constexpr int steps = (F::units + Product::step_units - 1) / Product::step_units;
  static constexpr int groups = P::outputs / 32;   // of outputs, one for each of so many warps
  static constexpr int teams = F::warps / groups;  // of warps, which share the pixels
  static constexpr int weight_vectors = F::layout.weight_vectors(Product::step_units);
  static constexpr int pixel_groups = P::tile_pixels / 8;

  __device__ FewChannelConvolution(const typename P::Image* x, T* y, uint4* memory)
      : x_(x),
        y_(y),
        weights_(memory),
        rows_(reinterpret_cast<T*>(memory + weight_vectors)),
        lane_(static_cast<int>(threadIdx.x) % 32),
        team_(static_cast<int>(threadIdx.x) / 32 / groups),
        group_(static_cast<int>(threadIdx.x) / 32 % groups),
        first_output_(32 * group_ + Product::first_output(lane_)) {}

  // `parts`: 2 * outputs sums for each block, null without statistics.
  __device__ void run(const T* weight, const T* bias, float* parts) {
    deal_weights(weight);
    if constexpr (P::bias) bias_ = load<F::vector>(bias + first_output_);
    for (int n = static_cast<int>(threadIdx.x); n < 2 * F::item_elements / F::vector; n += P::threads)
      reinterpret_cast<uint4*>(rows_)[n] = uint4{0, 0, 0, 0};
    __syncthreads();
    int buffer = 0;
    fetch_rows<P>(x_, static_cast<int>(blockIdx.x), rows_);
    end_of_copies();
    for (int item = static_cast<int>(blockIdx.x); item < F::items; item += static_cast<int>(gridDim.x)) {
      const int next = item + static_cast<int>(gridDim.x);
      if (next < F::items) fetch_rows<P>(x_, next, rows_of(1 - buffer));
      end_of_copies();
      wait_for_copies(1);
      round_rows<P>(rows_of(buffer));
      __syncthreads();
      make_item(item, rows_of(buffer));
      __syncthreads();
      buffer = 1 - buffer;
    }
    if constexpr (P::statistics) write_sums(parts);
  }

 private:
  __device__ T* rows_of(int buffer) const { return rows_ + buffer * F::item_elements; }

  // weight: [outputs, window_rows, run], as the registers of the instruction want it.
  __device__ void deal_weights(const T* weight) {
    auto* words = reinterpret_cast<uint32*>(weights_);
    for (int n = static_cast<int>(threadIdx.x); n < weight_vectors * 4; n += P::threads) {
      const int word = n % 4, lane = n / 4 % 32, pair = n / 128 % 2, group = n / 256 % groups;
      const int step = n / 256 / groups;
      const int output = 32 * group + Product::output_of_word(pair, word, lane);
      const auto at = [&](int unit, int place) {
        const int in_run = unit % F::run_units * 8 + place - F::lead;
        const bool inside = unit < F::units && in_run >= 0 && in_run < F::run;
        return inside ? weight[(output * P::window_rows + unit / F::run_units) * F::run + in_run] : T{};
      };
      words[n] = Product::word_of_weights(at, step, word, lane);
    }
  }

  __device__ void make_item(int item, const T* rows) {
    const int image = item / F::items_of_image;
    const int top = item % F::items_of_image * P::item_rows;
    const int present = min(P::item_rows, P::out_height - top) * P::out_width;
    T* y = y_ + (int64{image} * P::out_height + top) * P::out_width * P::outputs;
    for (int tile = team_; tile * P::tile_pixels < present; tile += teams) {
      const T* from[pixel_groups];
#pragma unroll
      for (int i = 0; i < pixel_groups; ++i) {
        const int pixel = min(tile * P::tile_pixels + lane_ / 4 + 8 * i, present - 1);
        from[i] = rows + pixel / P::out_width * (P::stride * F::pitch) + pixel % P::out_width * F::step +
                  F::first + 2 * (lane_ % 4);
      }
      float sums[2 * pixel_groups][4] = {};
      multiply(from, sums);
#pragma unroll
      for (int result = 0; result < pixel_groups * Product::results_of_group; ++result) {
        const int pixel = tile * P::tile_pixels + Product::pixel_of(lane_, result);
        if (pixel < present) write(y + int64{pixel} * P::outputs, sums, result);
      }
    }
  }

  __device__ void multiply(const T* const (&from)[pixel_groups], float (&sums)[2 * pixel_groups][4]) const {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      uint2 x[pixel_groups];
#pragma unroll
      for (int i = 0; i < pixel_groups; ++i) x[i] = Product::template words_of_run<F>(from[i], step);
      const uint4* dealt = weights_ + (step * groups + group_) * 64 + lane_;
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) Product::multiply(sums, x, pair, dealt[pair * 32]);
    }
  }

  // The outputs of a pixel that this thread has.
  __device__ void write(T* y, const float (&sums)[2 * pixel_groups][4], int result) {
    Pack<T, F::vector> outputs;
#pragma unroll
    for (int v = 0; v < F::vector; ++v) {
      float sum = Product::sum_of(sums, result, v);
      if constexpr (P::bias) sum += widen(bias_.at[v]);
      const T value = narrow<T>(P::end(sum));
      outputs.at[v] = value;
      if constexpr (P::statistics) {
        total_[v] += widen(value);
        squares_[v] += widen(value) * widen(value);
      }
    }
    store(y + first_output_, outputs);
  }

  __device__ void write_sums(float* parts) {
    auto* scratch = reinterpret_cast<float*>(rows_);  // [2, teams, outputs]
#pragma unroll
    for (int v = 0; v < F::vector; ++v) {
      // Lanes with the same outputs write the same.
      scratch[team_ * P::outputs + first_output_ + v] = Product::sum_of_lanes(total_[v]);
      scratch[(teams + team_) * P::outputs + first_output_ + v] = Product::sum_of_lanes(squares_[v]);
    }
    __syncthreads();
    for (int n = static_cast<int>(threadIdx.x); n < 2 * P::outputs; n += P::threads) {
      const int kind = n / P::outputs, output = n % P::outputs;
      float sum = 0;
      for (int team = 0; team < teams; ++team) sum += scratch[(kind * teams + team) * P::outputs + output];
      parts[(int64{kind} * gridDim.x + blockIdx.x) * P::outputs + output] = sum;
    }
  }

  const typename P::Image* x_;
  T* y_;
  uint4* weights_;
  T* rows_;
  int lane_, team_, group_, first_output_;
  Pack<T, F::vector> bias_;
  float total_[F::vector] = {};
  float squares_[F::vector] = {};
};

template <typename P>
struct FewChannelPointers {
  const typename P::Image* x;         // [items, rows, columns, channels]
  const typename P::Element* weight;  // [outputs, rows, columns, channels] of the window
  const typename P::Element* bias;    // [outputs]; null without one
  typename P::Element* y;             // [items, rows, columns, outputs]
  float* parts;                       // [2, blocks, outputs]: with statistics, to be added up
};

template <typename P>
__device__ void few_channel_convolution(const FewChannelPointers<P>& at) {
  extern __shared__ uint4 memory[];
  FewChannelConvolution<P>(at.x, at.y, memory).run(at.weight, at.bias, at.parts);
}

}  // namespace tessera
