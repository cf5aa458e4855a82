// What kernels that read the x of batch normalisations with known statistics make of 8 channels of it. Values
// round where they would in memory.
#pragma once

#include "primitives.cuh"

namespace tessera {

// x factor + offset is the normalised x.
struct NormalisedBy {
  float factor, offset;
};

__device__ inline NormalisedBy normalised_by(float scale, float bias, float mean, float variance,
                                             float epsilon) {
  const float factor = op_rsqrt(variance + epsilon) * scale;
  return {factor, bias - mean * factor};
}

// sums = the normalised x, or += after the first.
template <typename T>
__device__ inline void add_normalised(float (&sums)[8], bool first, const Pack<T, 8>& x,
                                      const Pack<float, 8>& factor, const Pack<float, 8>& offset) {
#pragma unroll
  for (int v = 0; v < 8; ++v) {
    const float own = rounded<T>(widen(x.at[v]) * factor.at[v] + offset.at[v]);
    sums[v] = first ? own : sums[v] + own;
  }
}

template <typename T>
__device__ inline Pack<T, 8> relu_of(const float (&sums)[8]) {
  Pack<T, 8> y;
#pragma unroll
  for (int v = 0; v < 8; ++v) y.at[v] = narrow<T>(sums[v] > 0 ? sums[v] : 0);
  return y;
}

}  // namespace tessera
