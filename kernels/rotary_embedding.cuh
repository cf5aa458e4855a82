// Rotary positions: pairs of a head's numbers are rotated by the angles of its token. A thread has some pairs
// at a time, whose numbers are two accesses and whose angles are as many each.
#pragma once

#include "pairs.cuh"
#include "windows.cuh"

namespace tessera {

// The heads of x, which lie one after the other. Row r has the angles number
// r / batch_rows * tokens + r / token_rows % tokens.
template <typename I>
struct RotaryRows {
  I rows;
  I tokens;
  I token_rows;
  I batch_rows;
};

template <int W>
__device__ inline void widen_all(double (&to)[W], const Pack<double, W>& pack) {
#pragma unroll
  for (int k = 0; k < W; ++k) to[k] = pack.at[k];
}
template <typename T, int W>
__device__ inline Pack<T, W> narrow_all(const double (&values)[W]) {
  Pack<T, W> pack;
#pragma unroll
  for (int k = 0; k < W; ++k) pack.at[k] = values[k];
  return pack;
}

// Rows of so many pairs, V of them at a time. Each place is read before it is written, and by one thread: y
// may be x.
template <int V, int pairs, bool interleaved, bool inverse, typename I, typename T, typename S>
__device__ void rotary_embedding(const T* x, const S* cosines, const S* sines, T* y, RotaryRows<I> at) {
  constexpr int packs = pairs / V;
  constexpr int apart = interleaved ? V : pairs;
  for_each_element<I>(at.rows * packs, [&](I element) {
    const I row = element / packs;
    const int pair = static_cast<int>(element % packs) * V;
    const I angles = (row / at.batch_rows * at.tokens + row / at.token_rows % at.tokens) * pairs + pair;
    const I place = row * (2 * pairs) + (interleaved ? 2 * pair : pair);
    const Pack<S, V> cosine = load<V>(cosines + angles);
    const Pack<S, V> sine = load<V>(sines + angles);
    const Pack<T, V> low = load<V>(x + place);
    const Pack<T, V> high = load<V>(x + place + apart);
    S values[2][V];
    widen_all(values[0], low);
    widen_all(values[1], high);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      S& even = interleaved ? values[2 * k / V][2 * k % V] : values[0][k];
      S& odd = interleaved ? values[(2 * k + 1) / V][(2 * k + 1) % V] : values[1][k];
      S& first = inverse ? odd : even;
      S& second = inverse ? even : odd;
      const S a = first;
      const S b = second;
      first = a * cosine.at[k] - b * sine.at[k];
      second = b * cosine.at[k] + a * sine.at[k];
    }
    store(y + place, narrow_all<T>(values[0]));
    store(y + place + apart, narrow_all<T>(values[1]));
  });
}

}  // namespace tessera
