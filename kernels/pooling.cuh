// Pooling of channels-last tensors; P as in windows.cuh, with `count_padding`. A thread works on V
// neighboring channels.
#pragma once

#include "windows.cuh"

namespace tessera {

// Calls function(i, j, k) for every position of three ranges.
template <typename I, typename F>
__device__ inline void for_each_position(const Range<I>& a, const Range<I>& b, const Range<I>& c,
                                         F function) {
  for (I i = a.first; i <= a.last; ++i) {
    for (I j = b.first; j <= b.last; ++j) {
      for (I k = c.first; k <= c.last; ++k) function(i, j, k);
    }
  }
}

template <int V, typename T, typename P>
__device__ void max_pool(const P& p, const T* x, T* y, uint8* position) {
  using I = typename P::index;
  for_each_element<I>(pixels(p, p.output) * (p.channels / V), [&](I group) {
    const I index = group * V;
    const Place<I> to = place_of(index, p.output, p.channels);
    Pack<T, V> best;
    Pack<uint8, V> found;
    bool any = false;
    for_each_position<I>(
        inside(p, 0, to.at[0]), inside(p, 1, to.at[1]), inside(p, 2, to.at[2]), [&](I i, I j, I k) {
          const I from =
              index_of(to.image, to.at[0] * p.strides[0] - p.padding[0] + i,
                       to.at[1] * p.strides[1] - p.padding[1] + j, to.at[2] * p.strides[2] - p.padding[2] + k,
                       to.channel, p.input, p.channels);
          const Pack<T, V> own = load<V>(x + from);
          const auto number = static_cast<uint8>((i * p.window[1] + j) * p.window[2] + k);
#pragma unroll
          for (int v = 0; v < V; ++v) {
            const auto value = widen(own.at[v]);
            if (!any || value > widen(best.at[v]) || (is_nan(value) && !is_nan(widen(best.at[v])))) {
              best.at[v] = own.at[v];
              found.at[v] = number;
            }
          }
          any = true;
        });
    store<V>(y + index, best);
    store<V>(position + index, found);
  });
}

// Gathers from every window over the element, so that nothing is added atomically.
template <int V, typename T, typename P>
__device__ void max_pool_gradient(const P& p, const T* dy, const uint8* position, T* dx) {
  using I = typename P::index;
  for_each_element<I>(pixels(p, p.input) * (p.channels / V), [&](I group) {
    const I index = group * V;
    const Place<I> at = place_of(index, p.input, p.channels);
    Accumulator<T> sum[V] = {};
    for_each_position<I>(windows_over(p, 0, at.at[0]), windows_over(p, 1, at.at[1]),
                         windows_over(p, 2, at.at[2]), [&](I i, I j, I k) {
                           const I from = index_of(at.image, i, j, k, at.channel, p.output, p.channels);
                           const I own = ((at.at[0] + p.padding[0] - i * p.strides[0]) * p.window[1] +
                                          (at.at[1] + p.padding[1] - j * p.strides[1])) *
                                             p.window[2] +
                                         (at.at[2] + p.padding[2] - k * p.strides[2]);
                           const Pack<uint8, V> places = load<V>(position + from);
                           const Pack<T, V> gradients = load<V>(dy + from);
#pragma unroll
                           for (int v = 0; v < V; ++v) {
                             if (places.at[v] == own) sum[v] += widen(gradients.at[v]);
                           }
                         });
    Pack<T, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) result.at[v] = narrow<T>(sum[v]);
    store<V>(dx + index, result);
  });
}

// How many elements a window counts.
template <typename P, typename I>
__device__ inline I counted(const P& p, I a, I b, I c) {
  if (p.count_padding) return p.window[0] * p.window[1] * p.window[2];
  const Range<I> i = inside(p, 0, a), j = inside(p, 1, b), k = inside(p, 2, c);
  return (i.last - i.first + 1) * (j.last - j.first + 1) * (k.last - k.first + 1);
}

template <int V, typename T, typename P>
__device__ void average_pool(const P& p, const T* x, T* y) {
  using I = typename P::index;
  for_each_element<I>(pixels(p, p.output) * (p.channels / V), [&](I group) {
    const I index = group * V;
    const Place<I> to = place_of(index, p.output, p.channels);
    Accumulator<T> sum[V] = {};
    for_each_position<I>(
        inside(p, 0, to.at[0]), inside(p, 1, to.at[1]), inside(p, 2, to.at[2]), [&](I i, I j, I k) {
          const I from =
              index_of(to.image, to.at[0] * p.strides[0] - p.padding[0] + i,
                       to.at[1] * p.strides[1] - p.padding[1] + j, to.at[2] * p.strides[2] - p.padding[2] + k,
                       to.channel, p.input, p.channels);
          const Pack<T, V> own = load<V>(x + from);
#pragma unroll
          for (int v = 0; v < V; ++v) sum[v] += widen(own.at[v]);
        });
    const auto count = static_cast<Accumulator<T>>(counted(p, to.at[0], to.at[1], to.at[2]));
    Pack<T, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) result.at[v] = narrow<T>(sum[v] / count);
    store<V>(y + index, result);
  });
}

template <int V, typename T, typename P>
__device__ void average_pool_gradient(const P& p, const T* dy, T* dx) {
  using I = typename P::index;
  for_each_element<I>(pixels(p, p.input) * (p.channels / V), [&](I group) {
    const I index = group * V;
    const Place<I> at = place_of(index, p.input, p.channels);
    Accumulator<T> sum[V] = {};
    for_each_position<I>(windows_over(p, 0, at.at[0]), windows_over(p, 1, at.at[1]),
                         windows_over(p, 2, at.at[2]), [&](I i, I j, I k) {
                           const Pack<T, V> own =
                               load<V>(dy + index_of(at.image, i, j, k, at.channel, p.output, p.channels));
                           const auto count = static_cast<Accumulator<T>>(counted(p, i, j, k));
#pragma unroll
                           for (int v = 0; v < V; ++v) sum[v] += Accumulator<T>(widen(own.at[v])) / count;
                         });
    Pack<T, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) result.at[v] = narrow<T>(sum[v]);
    store<V>(dx + index, result);
  });
}

}  // namespace tessera
