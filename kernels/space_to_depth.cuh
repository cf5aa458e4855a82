// Blocks of pixels as channels, and back.
// P, the problem, holds as constants of its type `index`: images, height, width and channels of the image;
// rows and columns of blocks, block_height and block_width in pixels of pixel_channels each; low_row and
// low_column, the zeros before the image.
#pragma once

#include "primitives.cuh"
#include "windows.cuh"

namespace tessera {

// A thread moves a run, a row of pixels of one block: L elements, V at once. What lies side by side in y does
// so in x, but for channels of zeros.
template <int L, int V, typename P, typename X, typename Y>
__device__ void space_to_depth(const P& p, const X* __restrict__ x, Y* __restrict__ y) {
  using index = typename P::index;
  for_each_element(p.images * p.rows * p.columns * p.block_height, [&](index run) {
    const index block = run / p.block_height;
    const index row = block / p.columns % p.rows * p.block_height + run % p.block_height - p.low_row;
    const index column = block % p.columns * p.block_width - p.low_column;
    const index image = block / p.columns / p.rows;
    const index from = ((image * p.height + row) * p.width + column) * p.channels;
    const bool row_exists = row >= 0 && row < p.height;
#pragma unroll
    for (int start = 0; start < L; start += V) {
      Pack<Y, V> pack;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const index pixel = (start + v) / p.pixel_channels;
        const index channel = (start + v) % p.pixel_channels;
        const bool exists =
            row_exists && channel < p.channels && column + pixel >= 0 && column + pixel < p.width;
        pack.at[v] = narrow<Y>(exists ? op_cast<Y>(widen(x[from + pixel * p.channels + channel])) : 0);
      }
      store<V>(y + run * L + start, pack);
    }
  });
}

// The image may be smaller than its blocks.
template <typename P, typename T>
__device__ void depth_to_space(const P& p, const T* __restrict__ x, T* __restrict__ y) {
  using index = typename P::index;
  for_each_element(p.images * p.height * p.width * p.channels, [&](index element) {
    const index channel = element % p.channels;
    const index column = element / p.channels % p.width;
    const index row = element / p.channels / p.width % p.height;
    const index image = element / p.channels / p.width / p.height;
    const index block = (image * p.rows + row / p.block_height) * p.columns + column / p.block_width;
    const index pixel = row % p.block_height * p.block_width + column % p.block_width;
    y[element] = x[(block * p.block_height * p.block_width + pixel) * p.pixel_channels + channel];
  });
}

}  // namespace tessera
