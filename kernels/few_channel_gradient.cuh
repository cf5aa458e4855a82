// The weight gradient of a convolution of few channels (few_channels.cuh). Each block adds up its own items,
// each warp one row of the window; a second launch adds up the blocks.
#pragma once

#include "few_channels.cuh"

namespace tessera {

// P as there; as many warps as the window has rows.
template <typename P>
class FewChannelGradient {
 public:
  using T = typename P::Element;
  using F = FewChannels<P>;
  static constexpr int threads = 32 * P::window_rows;
  static constexpr int tiles = P::outputs / 16;
  static constexpr int pixels = P::item_rows * P::out_width;
  static constexpr int padded_pixels = round_up_to(pixels, 16);
  static constexpr int slope_pitch = P::outputs + 8;  // so that 8 rows begin in different banks
  static constexpr int x_elements = F::rows * F::pitch;
  static constexpr int slope_elements = padded_pixels * slope_pitch;

  __device__ FewChannelGradient(const T* x, const T* dy, uint4* memory)
      : x_(x),
        dy_(dy),
        x_rows_(reinterpret_cast<T*>(memory)),
        slopes_(x_rows_ + 2 * x_elements),
        places_(reinterpret_cast<int*>(slopes_ + 2 * slope_elements)),
        lane_(static_cast<int>(threadIdx.x) % 32),
        row_(static_cast<int>(threadIdx.x) / 32) {}

  // `parts`: a number for each element of the weight and each block.
  __device__ void run(float* parts) {
    prepare();
    int buffer = 0;
    fetch(static_cast<int>(blockIdx.x), buffer);
    for (int item = static_cast<int>(blockIdx.x); item < F::items; item += static_cast<int>(gridDim.x)) {
      const int next = item + static_cast<int>(gridDim.x);
      if (next < F::items) fetch(next, 1 - buffer);
      end_of_copies();
      wait_for_copies(1);
      __syncthreads();
      add_item(x_rows_ + buffer * x_elements, slopes_ + buffer * slope_elements);
      __syncthreads();
      buffer = 1 - buffer;
    }
    write(parts);
  }

 private:
  __device__ void prepare() {
    const int thread = static_cast<int>(threadIdx.x);
    for (int n = thread; n < (2 * x_elements + 2 * slope_elements) / 8; n += threads)
      reinterpret_cast<uint4*>(x_rows_)[n] = uint4{0, 0, 0, 0};
    // Slopes behind the last pixel are zero; any place serves them.
    for (int pixel = thread; pixel < padded_pixels; pixel += threads) {
      const int own = pixel < pixels ? pixel : 0;
      places_[pixel] = own / P::out_width * (P::stride * F::pitch) + own % P::out_width * F::step + F::first;
    }
    __syncthreads();
  }

  __device__ void fetch(int item, int buffer) {
    fetch_rows<P, threads>(x_, item, x_rows_ + buffer * x_elements);
    constexpr int chunks = P::outputs / 8;
    const int image = item / F::items_of_image;
    const int top = item % F::items_of_image * P::item_rows;
    const int present = min(P::item_rows, P::out_height - top) * P::out_width;
    const T* from = dy_ + (int64{image} * P::out_height + top) * P::out_width * P::outputs;
    T* to = slopes_ + buffer * slope_elements;
    for (int n = static_cast<int>(threadIdx.x); n < pixels * chunks; n += threads) {
      const int pixel = n / chunks, chunk = n % chunks;
      auto* place = to + pixel * slope_pitch + chunk * 8;
      if (pixel < present) {
        copy_ahead(place, from + pixel * P::outputs + chunk * 8);
      } else {
        *reinterpret_cast<uint4*>(place) = uint4{0, 0, 0, 0};
      }
    }
    end_of_copies();
  }

  __device__ void add_item(const T* x, const T* slopes) {
    const T* own = x + row_ * F::pitch + lane_ / 4;
    // Of the 16 x 16 slopes of a tile: rows of pixels, the second matrix 8 outputs on, the third 8 pixels on.
    const T* slope = slopes + (lane_ % 8 + lane_ / 16 * 8) * slope_pitch + lane_ / 8 % 2 * 8;
#pragma unroll 2
    for (int pixel = 0; pixel < padded_pixels; pixel += 16) {
      uint32 a[tiles][4];
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) load_turned(a[tile], slope + pixel * slope_pitch + tile * 16);
      const int2 low = *reinterpret_cast<const int2*>(places_ + pixel + lane_ % 4 * 2);
      const int2 high = *reinterpret_cast<const int2*>(places_ + pixel + 8 + lane_ % 4 * 2);
#pragma unroll
      for (int unit = 0; unit < F::run_units; ++unit) {
        const uint32 b0 = pair_of(own[low.x + unit * 8], own[low.y + unit * 8]);
        const uint32 b1 = pair_of(own[high.x + unit * 8], own[high.y + unit * 8]);
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) multiply_16x8x16<T>(sums_[tile][unit], a[tile], b0, b1);
      }
    }
  }

  __device__ void write(float* parts) const {
    float* own = parts + int64{blockIdx.x} * (P::outputs * P::window_rows * F::run);
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int unit = 0; unit < F::run_units; ++unit) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const int output = tile * 16 + lane_ / 4 + n / 2 * 8;
          const int place = unit * 8 + lane_ % 4 * 2 + n % 2 - F::lead;
          if (place >= 0 && place < F::run)
            own[(output * P::window_rows + row_) * F::run + place] = sums_[tile][unit][n];
        }
      }
    }
  }

  const T* x_;
  const T* dy_;
  T* x_rows_;
  T* slopes_;
  int* places_;  // of each pixel's run in the rows of x
  int lane_, row_;
  float sums_[tiles][F::run_units][4] = {};
};

template <typename P>
__device__ void few_channel_gradient(const typename P::Element* x, const typename P::Element* dy,
                                     float* parts) {
  extern __shared__ uint4 memory[];
  FewChannelGradient<P>(x, dy, memory).run(parts);
}

}  // namespace tessera
