// Convolutions of images with few channels, such as the first one of a network, on the Tensor Cores, and
// their weight gradients. Libraries pad the channels to what their tiles take; here a row of the window, all
// channels of its columns, is one run of shared memory, so that what is multiplied with zero is a tenth.
//
// A row of x in shared memory begins with zeros for the padding. The run under output column o begins at
// o * stride * channels + `first`, an even place, since two elements go to a register; so some runs begin one
// element early, at `lead`, whose weight is zero. Eight elements of a run are a unit: half of what one
// instruction multiplies.
//
// P: Element (16 bits), images, height, width, channels, out_height, out_width, outputs, window_rows,
// window_columns, stride, padding_top, padding_left, item_rows (rows of the result that a block works on at a
// time).
#pragma once

#include "copies.cuh"
#include "matrix_products.cuh"
#include "reduce.cuh"

namespace tessera {

__device__ constexpr int round_up_to(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
__device__ constexpr int larger_of(int a, int b) {
  return a > b ? a : b;
}

template <typename P>
struct FewChannels {
  static constexpr int threads = 256, warps = threads / 32;
  static constexpr int lead = P::padding_left * P::channels % 2;
  static constexpr int start = round_up_to(P::padding_left * P::channels + lead, 8);  // of the image in a row
  static constexpr int first = start - P::padding_left * P::channels - lead;
  static constexpr int run = P::window_columns * P::channels;
  static constexpr int run_units = round_up_to(run + lead, 8) / 8;
  static constexpr int step = P::stride * P::channels;  // from a column of the result to the next
  static constexpr int read = first + (P::out_width - 1) * step + run_units * 8;
  static constexpr int pitch = round_up_to(larger_of(start + P::width * P::channels, read), 8);
  static constexpr int rows = (P::item_rows - 1) * P::stride + P::window_rows;  // of x, for one item
  static constexpr int units = P::window_rows * run_units;
  static constexpr int items_of_image = (P::out_height + P::item_rows - 1) / P::item_rows;
  static constexpr int items = P::images * items_of_image;

  // Where a unit of the window lies, from the place of its first one.
  static __device__ constexpr int offset_of(int unit) {
    return unit < units ? unit / run_units * pitch + unit % run_units * 8 : 0;
  }
};

// Starts to read the rows of x that an item needs.
template <typename P, int Threads>
__device__ void fetch_rows(const typename P::Element* x, int item, typename P::Element* rows) {
  using F = FewChannels<P>;
  constexpr int chunks = P::width * P::channels / 8;  // of a row
  const int image = item / F::items_of_image;
  const int top = item % F::items_of_image * P::item_rows * P::stride - P::padding_top;
  for (int n = static_cast<int>(threadIdx.x); n < F::rows * chunks; n += Threads) {
    const int row = n / chunks, chunk = n % chunks;
    auto* to = rows + row * F::pitch + F::start + chunk * 8;
    const int from = top + row;
    if (from >= 0 && from < P::height) {
      copy_ahead(to, x + (int64{image} * P::height + from) * (P::width * P::channels) + chunk * 8);
    } else {
      *reinterpret_cast<uint4*>(to) = uint4{0, 0, 0, 0};
    }
  }
}

// P, beside: statistics (also sums of the result and of its squares), bias and relu (before the result is
// stored). A warp makes 32 pixels by 32 outputs at a time. The outputs are dealt to the columns of the
// instruction's tiles so that a thread ends with 8 neighbouring ones.
template <typename P>
class FewChannelConvolution {
 public:
  using T = typename P::Element;
  using F = FewChannels<P>;
  static constexpr int steps = (F::units + 1) / 2;  // of 16 elements
  static constexpr int groups = P::outputs / 32;    // of outputs, one for each of so many warps
  static constexpr int teams = F::warps / groups;   // of warps, which share the pixels
  static constexpr int weight_vectors = steps * groups * 2 * 32;
  static constexpr int pixels = P::item_rows * P::out_width;

  __device__ FewChannelConvolution(const T* x, T* y, uint4* memory)
      : x_(x),
        y_(y),
        weights_(memory),
        rows_(reinterpret_cast<T*>(memory + weight_vectors)),
        lane_(static_cast<int>(threadIdx.x) % 32),
        group_(static_cast<int>(threadIdx.x) / 32 % groups),
        team_(static_cast<int>(threadIdx.x) / 32 / groups) {}

  // `parts`: 2 * outputs sums for each block, null without statistics.
  __device__ void run(const T* weight, const T* bias, float* parts) {
    deal_weights(weight);
    if constexpr (P::bias) bias_ = load<8>(bias + 32 * group_ + 8 * (lane_ % 4));
    for (int n = static_cast<int>(threadIdx.x); n < 2 * F::rows * F::pitch / 8; n += F::threads)
      reinterpret_cast<uint4*>(rows_)[n] = uint4{0, 0, 0, 0};
    __syncthreads();
    int buffer = 0;
    fetch_rows<P, F::threads>(x_, static_cast<int>(blockIdx.x), rows_);
    end_of_copies();
    for (int item = static_cast<int>(blockIdx.x); item < F::items; item += static_cast<int>(gridDim.x)) {
      const int next = item + static_cast<int>(gridDim.x);
      if (next < F::items) fetch_rows<P, F::threads>(x_, next, rows_of(1 - buffer));
      end_of_copies();
      wait_for_copies(1);
      __syncthreads();
      make_item(item, rows_of(buffer));
      __syncthreads();
      buffer = 1 - buffer;
    }
    if constexpr (P::statistics) write_sums(parts);
  }

 private:
  __device__ T* rows_of(int buffer) const { return rows_ + buffer * (F::rows * F::pitch); }

  // weight: [outputs, window_rows, run], as the registers of the instruction want it.
  __device__ void deal_weights(const T* weight) {
    auto* words = reinterpret_cast<uint32*>(weights_);
    for (int n = static_cast<int>(threadIdx.x); n < weight_vectors * 4; n += F::threads) {
      const int word = n % 4, lane = n / 4 % 32, pair = n / 128 % 2, group = n / 256 % groups;
      const int step = n / 256 / groups;
      const int tile = 2 * pair + word / 2, column = lane / 4;
      const int output = 32 * group + dealt_column(4, tile, column);
      const int unit = 2 * step + word % 2;
      const int place = unit % F::run_units * 8 + 2 * (lane % 4) - F::lead;  // in the run
      uint32 both = 0;
      for (int i = 0; i < 2; ++i) {
        const bool inside = unit < F::units && place + i >= 0 && place + i < F::run;
        const T* from = weight + (output * P::window_rows + unit / F::run_units) * F::run + place + i;
        if (inside) both |= static_cast<uint32>(from->bits) << (16 * i);
      }
      words[n] = both;
    }
  }

  __device__ void make_item(int item, const T* rows) {
    const int image = item / F::items_of_image;
    const int top = item % F::items_of_image * P::item_rows;
    const int present = min(P::item_rows, P::out_height - top) * P::out_width;
    T* y = y_ + (int64{image} * P::out_height + top) * P::out_width * P::outputs;
    for (int tile = team_; tile * 32 < present; tile += teams) {
      const T* from[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int pixel = min(tile * 32 + lane_ / 4 + 8 * i, present - 1);
        from[i] = rows + pixel / P::out_width * (P::stride * F::pitch) + pixel % P::out_width * F::step +
                  F::first + 2 * (lane_ % 4);
      }
      float sums[2][4][4] = {};
      multiply(from, sums);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int pixel = tile * 32 + lane_ / 4 + 8 * i;
        if (pixel < present) write(y + int64{pixel} * P::outputs, sums[i / 2], i % 2);
      }
    }
  }

  __device__ void multiply(const T* const (&from)[4], float (&sums)[2][4][4]) const {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      uint32 a[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i / 2][i % 2] = *reinterpret_cast<const uint32*>(from[i] + F::offset_of(2 * step));
        a[i / 2][i % 2 + 2] = *reinterpret_cast<const uint32*>(from[i] + F::offset_of(2 * step + 1));
      }
      const uint4* dealt = weights_ + (step * groups + group_) * 64 + lane_;
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const uint4 b = dealt[pair * 32];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          multiply_16x8x16<T>(sums[m][2 * pair], a[m], b.x, b.y);
          multiply_16x8x16<T>(sums[m][2 * pair + 1], a[m], b.z, b.w);
        }
      }
    }
  }

  // The 8 outputs of a pixel that this thread has.
  __device__ void write(T* y, const float (&sums)[4][4], int half_of_tile) {
    Pack<T, 8> result;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      float sum = sums[v / 2][2 * half_of_tile + v % 2];
      if constexpr (P::bias) sum += widen(bias_.at[v]);
      if constexpr (P::relu) sum = sum > 0 ? sum : 0;
      const T value = narrow<T>(sum);
      result.at[v] = value;
      if constexpr (P::statistics) {
        total_[v] += widen(value);
        squares_[v] += widen(value) * widen(value);
      }
    }
    store(y + 32 * group_ + 8 * (lane_ % 4), result);
  }

  __device__ void write_sums(float* parts) {
    auto* room = reinterpret_cast<float*>(rows_);  // [2, teams, outputs]
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      total_[v] = sum_of_rows(total_[v]);
      squares_[v] = sum_of_rows(squares_[v]);
      if (lane_ >= 4) continue;
      const int output = 32 * group_ + 8 * lane_ + v;
      room[team_ * P::outputs + output] = total_[v];
      room[(teams + team_) * P::outputs + output] = squares_[v];
    }
    __syncthreads();
    for (int n = static_cast<int>(threadIdx.x); n < 2 * P::outputs; n += F::threads) {
      const int kind = n / P::outputs, output = n % P::outputs;
      float sum = 0;
      for (int team = 0; team < teams; ++team) sum += room[(kind * teams + team) * P::outputs + output];
      parts[(int64{kind} * gridDim.x + blockIdx.x) * P::outputs + output] = sum;
    }
  }

  const T* x_;
  T* y_;
  uint4* weights_;
  T* rows_;
  int lane_, group_, team_;
  Pack<T, 8> bias_;
  float total_[8] = {};
  float squares_[8] = {};
};

template <typename P>
__device__ void few_channel_convolution(const typename P::Element* x, const typename P::Element* weight,
                                        const typename P::Element* bias, typename P::Element* y,
                                        float* parts) {
  extern __shared__ uint4 memory[];
  FewChannelConvolution<P>(x, y, memory).run(weight, bias, parts);
}

}  // namespace tessera
