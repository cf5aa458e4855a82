// What kernels that read the x of batch normalizations with known statistics make of a few channels of it.
// Values round where they would in memory.
#pragma once

#include "primitives.cuh"

namespace tessera {

// x factor + offset is the normalized x.
struct NormalizedBy {
  float factor, offset;
};

__device__ inline NormalizedBy normalized_by(float scale, float bias, float mean, float variance,
                                             float epsilon) {
  const float factor = op_rsqrt(variance + epsilon) * scale;
  return {factor, bias - mean * factor};
}

// sums = the normalized x, or += after the first.
template <typename T, int V>
__device__ inline void add_normalized(float (&sums)[V], bool first, const Pack<T, V>& x,
                                      const Pack<float, V>& factor, const Pack<float, V>& offset) {
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const float own = rounded<T>(widen(x.at[v]) * factor.at[v] + offset.at[v]);
    sums[v] = first ? own : sums[v] + own;
  }
}

template <typename T, int V>
__device__ inline Pack<T, V> relu_of(const float (&sums)[V]) {
  Pack<T, V> y;
#pragma unroll
  for (int v = 0; v < V; ++v) y.at[v] = narrow<T>(op_relu(sums[v]));
  return y;
}

}  // namespace tessera
