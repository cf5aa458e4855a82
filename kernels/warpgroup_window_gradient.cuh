// The weight gradient of a convolution with windows of 3 x 3, a stride and a padding of 1, in TF32, for
// compute capability 9.0.
//
// A block keeps the gradient of 64 outputs by 64 inputs for all places of the window in registers, those of a
// column of the window in each of three warpgroups, and goes over its share of the images by items of few
// rows. Pixels are what is added over. The instruction reads its second factor with neighbors in that
// direction only, so rows of x are transposed in shared memory, and rounded on the way. dy is the first
// factor: each warpgroup reads it into registers, shifted by its column. While an item is added up, the next
// one, which has arrived, is transposed, and the one after it is on its way. A second launch adds up the
// blocks.
//
// P: images, height, width, inputs, outputs, item_rows (rows of an item; a divisor of all rows).
#pragma once

#include "copies.cuh"
#include "matrix_products.cuh"
#include "reduce.cuh"
#include "warpgroup_products.cuh"
#include "window_gradient_layout.h"

namespace tessera {

struct WindowGradientPointers {
  const float* x;   // [images, height, width, inputs]
  const float* dy;  // [images, height, width, outputs]
  float* parts;     // [blocks of a slice, outputs, 3, 3, inputs]
};

template <typename P>
class WarpgroupWindowGradient {
 public:
  using Layout = WindowGradientLayout;
  static constexpr Layout layout{P::width, P::item_rows};
  static constexpr int window = Layout::window, threads = Layout::threads, warpgroup = threads / window;
  static constexpr int slice = Layout::slice;
  static constexpr int input_slices = P::inputs / slice;
  static constexpr int slices = input_slices * (P::outputs / slice);
  static constexpr int chunk = chunk_elements<float>, chunks = slice / chunk;
  static constexpr int step = depth<float>;  // pixels of a product
  static constexpr int padded_width = layout.padded_width(), steps = padded_width / step;
  static constexpr int rows = P::images * P::height;
  static constexpr int items = rows / P::item_rows;

  static constexpr int raw_pitch = Layout::raw_pitch, transposed_pitch = Layout::transposed_pitch;
  static constexpr int dy_pitch = Layout::dy_pitch;
  static constexpr int raw_row = layout.raw_row(), raw_rows = layout.raw_rows();
  static constexpr int transposed_row = layout.transposed_row(), transposed_rows = layout.transposed_rows();
  static constexpr int dy_row = layout.dy_row(), dy_rows = layout.dy_rows();
  static constexpr int elements = layout.elements();
  static constexpr int tiles = slice / 8;  // of inputs
  static_assert(rows % P::item_rows == 0 && step == Layout::step && chunk == Layout::chunk);

  __device__ WarpgroupWindowGradient(const WindowGradientPointers& pointers, uint4* memory)
      : pointers_(pointers),
        raw_(reinterpret_cast<float*>(memory)),
        transposed_(raw_ + raw_rows * raw_row),
        dy_(transposed_ + (transposed_rows + 1) * transposed_row),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        slice_(static_cast<int>(blockIdx.x) % slices) {}

  __device__ void run() {
    // What lies beside the images stays zero.
    for (int n = thread_; n < elements / chunk; n += threads)
      reinterpret_cast<uint4*>(raw_)[n] = uint4{0, 0, 0, 0};
    __syncthreads();
    const int blocks = static_cast<int>(gridDim.x) / slices, block = static_cast<int>(blockIdx.x) / slices;
    const int first = static_cast<int>(int64{items} * block / blocks);
    const int last = static_cast<int>(int64{items} * (block + 1) / blocks);
    // The rows before those that items bring.
    fetch_x(first * P::item_rows - 1, 2);
    end_of_copies();
    wait_for_copies(0);
    turn_x(first * P::item_rows - 1, 2);
    __syncthreads();
    fetch(first, last);
    fetch(first + 1, last);
    wait_for_copies(1);
    turn_x(first * P::item_rows + 1, P::item_rows);
    for (int item = first; item < last; ++item) {
      show_to_products();
      __syncthreads();
      fetch(item + 2, last);
      add(item);
    }
#pragma unroll
    for (int y = 0; y < window; ++y) are_ready(sums_[y]);
    write(block);
  }

 private:
  // Calls visit(row, first pixel, chunk of the channels) for each 4 pixels of 16 bytes of this thread.
  template <typename Visit>
  __device__ void visit_x(int first, int count, const Visit& visit) const {
    constexpr int groups = (padded_width + 4 * chunk - 1) / (4 * chunk);  // of 16 pixels
    for (int n = thread_; n < count * groups * 4 * chunks; n += threads) {
      const int row = first + n / (groups * 4 * chunks);
      const int pixel = (n / (4 * chunks) % groups * 4 + n % 4) * chunk;
      if (row >= 0 && row < rows && pixel < padded_width) visit(row, pixel, n / 4 % chunks);
    }
  }
  __device__ float* raw(int row, int pixel, int part) const {
    return raw_ + row % raw_rows * raw_row + pixel * raw_pitch + part * chunk;
  }
  // After all others lies a row of zeros.
  __device__ float* transposed(int row) const {
    return transposed_ + row % transposed_rows * transposed_row;
  }

  __device__ void fetch_x(int first, int count) const {
    visit_x(first, count, [&](int row, int pixel, int part) {
      const float* from = pointers_.x + (int64{row} * P::width + pixel) * P::inputs +
                          slice_ % input_slices * slice + part * chunk;
#pragma unroll
      for (int n = 0; n < chunk; ++n) {
        if (pixel + n < P::width) copy_ahead(raw(row, pixel + n, part), from + n * P::inputs);
      }
    });
  }

  // What this thread has fetched.
  __device__ void turn_x(int first, int count) const {
    visit_x(first, count, [&](int row, int pixel, int part) {
      Pack<float, chunk> pixels[chunk];
#pragma unroll
      for (int n = 0; n < chunk; ++n) pixels[n] = as_factors(load<chunk>(raw(row, pixel + n, part)));
      float* to = transposed(row) + pixel / chunk * transposed_pitch + part * chunk * chunk;
#pragma unroll
      for (int channel = 0; channel < chunk; ++channel) {
        Pack<float, chunk> own;
#pragma unroll
        for (int n = 0; n < chunk; ++n) own.at[n] = pixels[n].at[channel];
        store(to + channel * chunk, own);
      }
    });
  }

  __device__ void fetch(int item, int last) const {
    if (item < last) {
      const int first = item * P::item_rows;
      fetch_x(first + 1, P::item_rows);
      constexpr int of_row = P::width * chunks;
      for (int n = thread_; n < P::item_rows * of_row; n += threads) {
        const int row = first + n / of_row, pixel = n % of_row / chunks, own = n % chunks * chunk;
        copy_ahead(dy_ + row % dy_rows * dy_row + (pixel + 1) * dy_pitch + own,
                   pointers_.dy + (int64{row} * P::width + pixel) * P::outputs +
                       slice_ / input_slices * slice + own);
      }
    }
    end_of_copies();
  }

  // The rows of the item are one chain of products: two groups of them are under way, but for its ends.
  __device__ void add(int item) {
    constexpr int all = P::item_rows * steps;
    const int first = item * P::item_rows;
    uint64 x[window];
    uint32 a[2][4];
    load_gradients(a[0], gradients_of(first));
#pragma unroll
    for (int own = 0; own < all; ++own) {
      if (own % steps == 0) describe_rows(x, first + own / steps);
      begin_products();
#pragma unroll
      for (int y = 0; y < window; ++y)
        multiply_rows<float, false>(sums_[y], a[own % 2], x[y] + own % steps * (2 * transposed_pitch / chunk),
                                    true);
      end_of_products();
      if (own == steps - 1) {
        wait_for_copies(1);
        turn_x(first + P::item_rows + 1, P::item_rows);
      }
      const int next = own + 1;
      if (next == all) break;
      wait_for_all_products_but<1>();
      load_gradients(a[next % 2], gradients_of(first + next / steps) + next % steps * step * dy_pitch);
    }
    wait_for_all_products_but<0>();
  }

  // The rows of x that the windows around a row read.
  __device__ void describe_rows(uint64 (&x)[window], int row) const {
    const int top = row % P::height;
#pragma unroll
    for (int y = 0; y < window; ++y) {
      const int own = top + y - 1;
      const float* from = own < 0 || own >= P::height ? transposed_ + transposed_rows * transposed_row
                                                      : transposed(row + y - 1 + transposed_rows);
      // From 4 pixels to the next, and from 8 channels to the next.
      x[y] = described_factor<4 * transposed_pitch, 4 * 8 * chunk, false>(from);
    }
  }

  // For the first step, the pixel lane % 4 in the window's column, and the first of the thread's two outputs.
  __device__ const float* gradients_of(int row) const {
    return dy_ + row % dy_rows * dy_row + (window - 1 - thread_ / warpgroup + lane_ % 4) * dy_pitch +
           thread_ % warpgroup / 32 * 16 + lane_ / 4 * 2;
  }

  __device__ static void load_gradients(uint32 (&a)[4], const float* from) {
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const auto own = load<2>(from + word * 4 * dy_pitch);
#pragma unroll
      for (int n = 0; n < 2; ++n) a[2 * word + n] = rounded_to_tf32(own.at[n]);
    }
  }

  __device__ void write(int block) const {
    const int output = slice_ / input_slices * slice + thread_ % warpgroup / 32 * 16 + lane_ / 4 * 2;
    float* own = pointers_.parts + int64{block} * (P::outputs * window * window * P::inputs) +
                 slice_ % input_slices * slice + lane_ % 4 * 2;
#pragma unroll
    for (int y = 0; y < window; ++y) {
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int place = ((output + part) * window + y) * window + thread_ / warpgroup;
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
          *reinterpret_cast<float2*>(own + place * P::inputs + tile * 8) =
              float2{sums_[y][tile][2 * part], sums_[y][tile][2 * part + 1]};
        }
      }
    }
  }

  const WindowGradientPointers& pointers_;
  float* raw_;
  float* transposed_;
  float* dy_;
  int thread_, lane_, slice_;
  float sums_[window][tiles][4] = {};  // of each row of the window
};

template <typename P>
__device__ void window_gradient(const WindowGradientPointers& pointers) {
  extern __shared__ uint4 memory[];
  WarpgroupWindowGradient<P>(pointers, memory).run();
}

}  // namespace tessera
