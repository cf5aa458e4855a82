// Batch normalization with relu before max pooling, and the gradients of the three. The tensor between
// them, and its gradient, exist in registers alone: windows share what they read through the caches.
//
// A thread keeps its Resident<P>::vector channels and goes through places of the image: forward `neighbors`
// windows side by side, backward tiles of as many elements as the windows move on by. What windows and
// elements have to do with each other is then the same at each place and known to the compiler.
//
// P, the problem, holds constants:
//   Element, Index             of tensors, of places in them
//   images, channels, epsilon
//   Height, Width              the spatial axes: input, output, window, stride, padding (before the image)
//   lanes, threads             threads side by side in a pixel, and of a block; blockIdx.y counts slices of
//                              lanes * vector channels
// and what batch_norm.cuh wants to know.
#pragma once

#include "batch_norm.cuh"
#include "pool_tile_layout.h"
#include "reduce.cuh"

namespace tessera {

// The number as it is stored, in the upper half of an integer.
__device__ inline int32 upper_half(half, float x) {
  int32 bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
  return bits;
}
__device__ inline int32 upper_half(bfloat16, float x) {
  int32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
  return bits;
}
__device__ inline int64 upper_half(float, float x) {
  return static_cast<int64>(static_cast<uint64>(__float_as_uint(x)) << 32);
}

// A number that is stored as T and where it stood in its window as one integer: the larger number makes the
// larger integer, of equal ones the first. NaN is the largest, as arithmetic and conversions make but the one
// that is positive. Less than zero are negative numbers and -0, which a relu makes zero.
template <typename T>
struct Ranked {
  using type = decltype(upper_half(T{}, 0.0f));
  using Bits = Unsigned<type>;
  static constexpr int bits = 8 * sizeof(T);
  static constexpr Bits lower = (Bits{1} << bits) - 1;

  // upper_half() of the number
  static __device__ type make(type upper, int place) { return upper + static_cast<type>(lower - place); }
  static __device__ T value(type rank) {
    const auto upper = static_cast<Bits>(rank) >> bits;
    if constexpr (sizeof(T) == 2) {
      return {static_cast<unsigned short>(upper)};
    } else {
      return __uint_as_float(static_cast<uint32>(upper));
    }
  }
  static __device__ uint8 place(type rank) {
    return static_cast<uint8>(lower - (static_cast<Bits>(rank) & lower));
  }
};

// What a thread works on.
template <typename P>
struct PoolThread {
  using Index = typename P::Index;
  static constexpr int V = Resident<P>::vector, side = Resident<P>::stride;

  const int channel =
      static_cast<int>(blockIdx.y) * Resident<P>::width + static_cast<int>(threadIdx.x) % P::lanes * V;
  const Index first = static_cast<Index>(blockIdx.x) * side + static_cast<int>(threadIdx.x) / P::lanes;
  const Index step = static_cast<Index>(gridDim.x) * side;
};

template <typename P, typename I>
__device__ inline I input_offset(I image, I h, I w, int channel) {
  return ((image * P::Height::input + h) * P::Width::input + w) * P::channels + channel;
}
template <typename P, typename I>
__device__ inline I output_offset(I image, I h, I w, int channel) {
  return ((image * P::Height::output + h) * P::Width::output + w) * P::channels + channel;
}

// The nearest place inside: reading there needs no branch.
template <typename I>
__device__ inline I nearest(I at, int extent) {
  return at < 0 ? 0 : at < extent ? at : extent - 1;
}

template <typename P>
struct PooledBatchNorm {
  const typename P::Element* x;
  const float* scale;
  const float* bias;
  const float* mean;
  const float* variance;
  typename P::Element* y;
  uint8* position;  // of each window's largest element in it
};

template <typename P>
__device__ void batch_norm_max_pool(const PooledBatchNorm<P>& at) {
  using T = typename P::Element;
  using H = typename P::Height;
  using W = typename P::Width;
  using I = typename P::Index;
  using Rank = Ranked<T>;
  constexpr int V = Resident<P>::vector, Q = P::neighbors;
  constexpr int columns = (Q - 1) * W::stride + W::window;
  constexpr I groups = (W::output + Q - 1) / Q;
  const PoolThread<P> own;
  float center[V], factor[V], offset[V];
  load_channels(at.mean, own.channel, center);
  load_channels(at.variance, own.channel, offset);
  load_channels(at.scale, own.channel, factor);
#pragma unroll
  for (int v = 0; v < V; ++v) factor[v] *= rsqrtf(offset[v] + P::epsilon);
  load_channels(at.bias, own.channel, offset);

  for (I n = own.first; n < P::images * H::output * groups; n += own.step) {
    const I row = n / groups, to_w = n % groups * Q;
    const I image = row / H::output, to_h = row % H::output;
    const I from_h = to_h * H::stride - H::padding, from_w = to_w * W::stride - W::padding;

    // The relu: whatever lies below zero leaves it, where the window starts.
    typename Rank::type best[Q][V];
#pragma unroll
    for (int q = 0; q < Q; ++q) {
#pragma unroll
      for (int v = 0; v < V; ++v) best[q][v] = Rank::make(0, 0);
    }
    // In place of what lies outside the image stands the nearest element, which the window holds as well. Of
    // the same number the first place is taken, which before the image is not the true one yet.
#pragma unroll
    for (int i = 0; i < H::window; ++i) {
      Pack<T, V> pixels[columns];
#pragma unroll
      for (int j = 0; j < columns; ++j)
        pixels[j] = load<V>(at.x + input_offset<P>(image, nearest(from_h + i, H::input),
                                                   nearest(from_w + j, W::input), own.channel));
#pragma unroll
      for (int j = 0; j < columns; ++j) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const auto value = upper_half(T{}, normalized(pixels[j].at[v], center[v], factor[v], offset[v]));
#pragma unroll
          for (int q = 0; q < Q; ++q) {
            const int k = j - q * W::stride;
            if (k < 0 || k >= W::window) continue;
            const auto rank = Rank::make(value, i * W::window + k);
            best[q][v] = rank > best[q][v] ? rank : best[q][v];
          }
        }
      }
    }
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      if (W::output % Q != 0 && to_w + q >= W::output) continue;
      Pack<T, V> values;
      Pack<uint8, V> places;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        values.at[v] = Rank::value(best[q][v]);
        places.at[v] = Rank::place(best[q][v]);
      }
      const I above = -from_h, left = -(from_w + q * W::stride);
      if (above > 0 || left > 0) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const I i = places.at[v] / W::window, j = places.at[v] % W::window;
          places.at[v] = static_cast<uint8>((i < above ? above : i) * W::window + (j < left ? left : j));
        }
      }
      const I to = output_offset<P>(image, to_h, to_w + q, own.channel);
      store(at.y + to, values);
      store(at.position + to, places);
    }
  }
}

// Tile number a of an axis is its elements a * stride, ..., a * stride + stride - 1. The windows a + first,
// ..., a + first + count - 1 lie over it, though not each over each element.
template <typename Axis>
struct PoolTile {
  static constexpr int tiles = (Axis::input + Axis::stride - 1) / Axis::stride;
  static constexpr PoolTileLayout layout{Axis::window, Axis::stride, Axis::padding};
  static constexpr int first = layout.first();
  static constexpr int count = layout.count();

  // Where in the window number `window` of them element `element` of the tile stands; may lie outside it.
  static constexpr __device__ int place(int element, int window) {
    return element + Axis::padding - (first + window) * Axis::stride;
  }
  template <typename I>
  static __device__ bool holds(I tile, int element) {
    return Axis::input % Axis::stride == 0 || tile * Axis::stride + element < Axis::input;
  }
};

// Calls function(at, kept) for every place of the thread: kept[0] is the gradient of the pooling's input,
// kept[1] is x. Backwards: from the end of the tensors to their start.
template <typename P, bool backwards, typename T, typename F>
__device__ inline void for_each_unpooled(const T* x, const T* dy, const uint8* position, F function) {
  using H = typename P::Height;
  using W = typename P::Width;
  using I = typename P::Index;
  using Down = PoolTile<H>;
  using Across = PoolTile<W>;
  constexpr int V = Resident<P>::vector;
  constexpr I places = I(P::images) * Down::tiles * Across::tiles;
  const PoolThread<P> own;
  for (I n = own.first; n < places; n += own.step) {
    const I tile = backwards ? places - 1 - n : n;
    const I row = tile / Across::tiles, b = tile % Across::tiles;
    const I image = row / Down::tiles, a = row % Down::tiles;

    Pack<T, V> gradients[Down::count][Across::count];
    Pack<uint32, V / 4> found[Down::count][Across::count];  // four positions each
#pragma unroll
    for (int i = 0; i < Down::count; ++i) {
#pragma unroll
      for (int j = 0; j < Across::count; ++j) {
        const I h = a + Down::first + i, w = b + Across::first + j;
        const I near_h = nearest(h, H::output), near_w = nearest(w, W::output);
        const I from = output_offset<P>(image, near_h, near_w, own.channel);
        gradients[i][j] = load<V>(dy + from);
        found[i][j] = load<V / 4>(reinterpret_cast<const uint32*>(position + from));
        if (h == near_h && w == near_w) continue;
          // There is no such window: no place has this number.
#pragma unroll
        for (uint32& four : found[i][j].at) four = 0xffffffffu;
      }
    }
    // All of x first: the function may write over it.
    Pack<T, V> pixels[H::stride][W::stride];
    const I start = input_offset<P>(image, a * H::stride, b * W::stride, own.channel);
#pragma unroll
    for (int h = 0; h < H::stride; ++h) {
#pragma unroll
      for (int w = 0; w < W::stride; ++w) {
        if (Down::holds(a, h) && Across::holds(b, w))
          pixels[h][w] = load<V>(x + (start + (h * W::input + w) * P::channels));
      }
    }
#pragma unroll
    for (int h = 0; h < H::stride; ++h) {
#pragma unroll
      for (int w = 0; w < W::stride; ++w) {
        if (!Down::holds(a, h) || !Across::holds(b, w)) continue;
        float sum[V] = {};
#pragma unroll
        for (int i = 0; i < Down::count; ++i) {
#pragma unroll
          for (int j = 0; j < Across::count; ++j) {
            const int k = Down::place(h, i), m = Across::place(w, j);
            if (k < 0 || k >= H::window || m < 0 || m >= W::window) continue;
#pragma unroll
            for (int v = 0; v < V; ++v) {
              const uint32 difference = found[i][j].at[v / 4] ^ (k * W::window + m) * 0x01010101u;
              if ((difference & 0xffu << v % 4 * 8) == 0) sum[v] += widen(gradients[i][j].at[v]);
            }
          }
        }
        Pack<T, V> kept[2];
#pragma unroll
        for (int v = 0; v < V; ++v) kept[0].at[v] = narrow<T>(sum[v]);
        kept[1] = pixels[h][w];
        function(start + (h * W::input + w) * P::channels, kept);
      }
    }
  }
}

template <typename P>
struct UnpooledGradient {
  BatchNormBackward<P> norm;  // but for dy, which is that of the pooled tensor
  const typename P::Element* dy;
  const uint8* position;
  float* parts;  // of all blocks, to be added up to the totals
  float* totals;
};

// Each block leaves its part of dbias = sum dz and of sum dz (x - mean): `parts` holds 2 * channels numbers
// of each blockIdx.x, in slices, the first sums of a slice before its second ones.
template <typename P>
__device__ void add_unpooled(const UnpooledGradient<P>& from) {
  constexpr int V = Resident<P>::vector, columns = 2 * Resident<P>::width;
  __shared__ float scratch[P::threads / 32 * columns];
  BatchNormBackward<P> work = from.norm;
  work.start(PoolThread<P>().channel);
  ChannelSums<V> sums{};
  for_each_unpooled<P, true>(
      work.x, from.dy, from.position,
      [&](int64 at, Pack<typename P::Element, V>(&kept)[2]) { work.take(at, kept, {}, sums); });
  add_over_block<P>(sums, scratch, from.parts + (int64{blockIdx.x} * gridDim.y + blockIdx.y) * columns);
}

template <typename P>
__device__ void write_unpooled(const UnpooledGradient<P>& from) {
  constexpr int V = Resident<P>::vector, width = Resident<P>::width;
  const PoolThread<P> own;
  ChannelSums<V> sums;
  const float* firsts = from.totals + int64{blockIdx.y} * 2 * width;
  load_channels(firsts, own.channel % width, sums.first);
  load_channels(firsts + width, own.channel % width, sums.second);
  BatchNormBackward<P> work = from.norm;
  work.start(own.channel);
  work.finish(own.channel, sums, own.first == 0);
  for_each_unpooled<P, false>(work.x, from.dy, from.position,
                              [&](int64 at, Pack<typename P::Element, V>(&kept)[2]) {
                                work.take_in_second_pass(kept, {});
                                work.write(at, kept, {});
                              });
}

}  // namespace tessera
