// The weight gradient of a convolution of few channels (few_channels.cuh). Each block adds up its own items.
// Its warps divide the units of the window among them, and where there are more warps, the pixels; a second
// launch adds up the blocks and these parts of the pixels.
#pragma once

#include "few_channels.cuh"

namespace tessera {

// P as there, and warp_units: the units of the window that a warp has.
template <typename P>
class FewChannelGradient {
 public:
  using T = typename P::Element;
  using F = FewChannels<P>;
  static constexpr int tiles = P::outputs / 16;
  using Gradients = FewChannelGradients<T, tiles>;
  static constexpr int groups = (F::units + P::warp_units - 1) / P::warp_units;  // of units
  static constexpr int pixel_parts = F::warps / groups;
  static_assert(F::warps % groups == 0, "each part of the pixels has a warp for each group");
  static constexpr int pixels = P::item_rows * P::out_width;
  static constexpr int padded_pixels = F::layout.padded_pixels(Gradients::depth);
  static constexpr int gradient_pitch = F::layout.gradient_pitch();
  static constexpr int x_elements = F::item_elements;
  static constexpr int gradient_elements = F::layout.gradient_elements(Gradients::depth);

  __device__ FewChannelGradient(const typename P::Image* x, const T* dy, uint4* memory)
      : x_(x),
        dy_(dy),
        x_rows_(reinterpret_cast<T*>(memory)),
        gradients_(x_rows_ + 2 * x_elements),
        places_(reinterpret_cast<int*>(gradients_ + 2 * gradient_elements)),
        lane_(static_cast<int>(threadIdx.x) % 32),
        group_(static_cast<int>(threadIdx.x) / 32 % groups),
        pixel_part_(static_cast<int>(threadIdx.x) / 32 / groups) {}

  // `parts`: a number for each element of the weight, each part of the pixels and each block.
  __device__ void run(float* parts) {
    prepare();
    int buffer = 0;
    fetch(static_cast<int>(blockIdx.x), buffer);
    for (int item = static_cast<int>(blockIdx.x); item < F::items; item += static_cast<int>(gridDim.x)) {
      const int next = item + static_cast<int>(gridDim.x);
      if (next < F::items) fetch(next, 1 - buffer);
      end_of_copies();
      wait_for_copies(1);
      round_rows<P>(x_rows_ + buffer * x_elements);
      __syncthreads();
      add_item(x_rows_ + buffer * x_elements, gradients_ + buffer * gradient_elements);
      __syncthreads();
      buffer = 1 - buffer;
    }
    write(parts);
  }

 private:
  __device__ void prepare() {
    const int thread = static_cast<int>(threadIdx.x);
    for (int n = thread; n < (2 * x_elements + 2 * gradient_elements) / F::vector; n += P::threads)
      reinterpret_cast<uint4*>(x_rows_)[n] = uint4{0, 0, 0, 0};
    // Gradients after the last pixel are zero; any place serves them.
    for (int pixel = thread; pixel < padded_pixels; pixel += P::threads) {
      const int own = pixel < pixels ? pixel : 0;
      places_[pixel] = own / P::out_width * (P::stride * F::pitch) + own % P::out_width * F::step + F::first;
    }
    __syncthreads();
  }

  __device__ void fetch(int item, int buffer) {
    fetch_rows<P>(x_, item, x_rows_ + buffer * x_elements);
    constexpr int chunks = P::outputs / F::vector;
    const int image = item / F::items_of_image;
    const int top = item % F::items_of_image * P::item_rows;
    const int present = min(P::item_rows, P::out_height - top) * P::out_width;
    const T* from = dy_ + (int64{image} * P::out_height + top) * P::out_width * P::outputs;
    T* to = gradients_ + buffer * gradient_elements;
    const int chunk = static_cast<int>(threadIdx.x) % chunks * F::vector;
    for (int pixel = static_cast<int>(threadIdx.x) / chunks; pixel < pixels; pixel += P::threads / chunks)
      copy_ahead_or_zero(to + pixel * gradient_pitch + chunk, from + pixel * P::outputs + chunk,
                         pixel < present);
    end_of_copies();
  }

  // Where a unit of this warp lies from the place of a pixel's window.
  __device__ int offset_of(int unit) const {
    return P::warp_units == F::run_units ? group_ * F::pitch + unit * 8
                                         : F::offset_of(group_ * P::warp_units + unit);
  }

  __device__ void add_item(const T* x, const T* gradients) {
    const T* gradient = Gradients::own_place(gradients, gradient_pitch, lane_);
    const T* from = x + lane_ / 4;
    int offsets[P::warp_units];
#pragma unroll
    for (int unit = 0; unit < P::warp_units; ++unit) offsets[unit] = offset_of(unit);
#pragma unroll(sizeof(T) == 2 ? 2 : 1)
    for (int pixel = pixel_part_ * Gradients::depth; pixel < padded_pixels;
         pixel += pixel_parts * Gradients::depth) {
      uint32 a[tiles][4];
      Gradients::load(a, gradient + pixel * gradient_pitch, gradient_pitch);
      const auto windows = Gradients::windows_of(from, places_ + pixel, lane_);
#pragma unroll
      for (int unit = 0; unit < P::warp_units; ++unit) {
        const uint2 b = Gradients::column(windows, offsets[unit]);
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) Gradients::multiply(sums_[tile][unit], a[tile], b);
      }
    }
  }

  __device__ void write(float* parts) const {
    float* own =
        parts + (int64{blockIdx.x} * pixel_parts + pixel_part_) * (P::outputs * P::window_rows * F::run);
#pragma unroll
    for (int unit = 0; unit < P::warp_units; ++unit) {
      const int unit_of_window = group_ * P::warp_units + unit;
      const int row = unit_of_window / F::run_units;
      if (row >= P::window_rows) continue;
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const int output = tile * 16 + lane_ / 4 + n / 2 * 8;
          const int place = unit_of_window % F::run_units * 8 + lane_ % 4 * 2 + n % 2 - F::lead;
          if (place >= 0 && place < F::run)
            own[(output * P::window_rows + row) * F::run + place] = sums_[tile][unit][n];
        }
      }
    }
  }

  const typename P::Image* x_;
  const T* dy_;
  T* x_rows_;
  T* gradients_;
  int* places_;  // of each pixel's run in the rows of x
  int lane_, group_, pixel_part_;
  float sums_[tiles][P::warp_units][4] = {};
};

template <typename P>
struct FewChannelGradientPointers {
  const typename P::Image* x;     // [items, rows, columns, channels]
  const typename P::Element* dy;  // [items, rows, columns, outputs]
  float* parts;                   // of each block's warps a gradient of the weight, to be added up
};

template <typename P>
__device__ void few_channel_gradient(const FewChannelGradientPointers<P>& at) {
  extern __shared__ uint4 memory[];
  FewChannelGradient<P>(at.x, at.dy, memory).run(at.parts);
}

}  // namespace tessera
