// layer_norm(residual + dropout(branch + bias)) and its gradient: a block goes over whole rows, of which each
// thread keeps what it reads in registers.
//
// Problem: T, the type of activations [rows, channels]; threads of a block; width, the elements that a thread
// moves at a time; packs, how often it does so for a row; rows, channels, stream, rate and factor of the
// dropout, epsilon. Thread t has the channels from (p * threads + t) * width on, for each p < packs.
#pragma once

#include "random.cuh"

namespace tessera {

// Sums over all threads of the block, which all get them. `scratch` holds two floats for each of its warps.
template <int Threads>
__device__ inline void add_over_block(float& first, float& second, float* scratch) {
  constexpr int warps = Threads / 32;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    first += __shfl_xor_sync(0xffffffffu, first, distance);
    second += __shfl_xor_sync(0xffffffffu, second, distance);
  }
  if constexpr (warps > 1) {
    if (threadIdx.x % 32 == 0) {
      scratch[threadIdx.x / 32] = first;
      scratch[warps + threadIdx.x / 32] = second;
    }
    __syncthreads();
    first = 0;
    second = 0;
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) {
      first += scratch[warp];
      second += scratch[warps + warp];
    }
    __syncthreads();
  }
}

template <typename Problem>
__device__ inline int first_channel(int pack) {
  return (pack * Problem::threads + static_cast<int>(threadIdx.x)) * Problem::width;
}

// What dropout makes of the elements from `index` on.
template <typename Problem>
__device__ inline void drop(const int64* counter, int64 index, float (&values)[Problem::width]) {
  float numbers[Problem::width];
  uniform<24>(counter, Problem::stream, static_cast<uint64>(index), numbers);
#pragma unroll
  for (int k = 0; k < Problem::width; ++k)
    values[k] = numbers[k] >= Problem::rate ? values[k] * Problem::factor : 0.0f;
}

// Null: bias, sum, mean and inverse where there is none.
template <typename Problem>
struct ResidualLayerNorm {
  using T = typename Problem::T;
  const T* branch;
  const T* bias;
  const T* residual;
  const float* scale;
  const float* shift;
  const int64* counter;
  T* sum;
  T* y;
  float* mean;
  float* inverse;
};

template <typename Problem>
__device__ void residual_layer_norm(const ResidualLayerNorm<Problem>& at) {
  using T = typename Problem::T;
  constexpr int W = Problem::width;
  __shared__ float scratch[2 * Problem::threads / 32];
  for (int64 row = blockIdx.x; row < Problem::rows; row += gridDim.x) {
    float x[Problem::packs][W];
    float total = 0;
    float squares = 0;
    float unused = 0;
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      const int c = first_channel<Problem>(p);
      if (c >= Problem::channels) continue;
      const int64 place = row * Problem::channels + c;
      const Pack<T, W> branch = load<W>(at.branch + place);
      const Pack<T, W> residual = load<W>(at.residual + place);
#pragma unroll
      for (int k = 0; k < W; ++k) {
        x[p][k] = widen(branch.at[k]);
        if (at.bias != nullptr) x[p][k] += widen(at.bias[c + k]);
      }
      drop<Problem>(at.counter, place, x[p]);
      // What the gradient will read is what is normalized: the rounded sum.
      Pack<T, W> sum;
#pragma unroll
      for (int k = 0; k < W; ++k) {
        sum.at[k] = narrow<T>(x[p][k] + widen(residual.at[k]));
        x[p][k] = widen(sum.at[k]);
        total += x[p][k];
      }
      if (at.sum != nullptr) store<W>(at.sum + place, sum);
    }
    add_over_block<Problem::threads>(total, unused, scratch);
    const float mean = total / Problem::channels;
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      if (first_channel<Problem>(p) >= Problem::channels) continue;
#pragma unroll
      for (int k = 0; k < W; ++k) squares += (x[p][k] - mean) * (x[p][k] - mean);
    }
    add_over_block<Problem::threads>(squares, unused, scratch);
    const float inverse = 1 / sqrtf(squares / Problem::channels + Problem::epsilon);
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      const int c = first_channel<Problem>(p);
      if (c >= Problem::channels) continue;
      Pack<T, W> y;
#pragma unroll
      for (int k = 0; k < W; ++k)
        y.at[k] = narrow<T>((x[p][k] - mean) * inverse * at.scale[c + k] + at.shift[c + k]);
      store<W>(at.y + row * Problem::channels + c, y);
    }
    if (threadIdx.x == 0 && at.mean != nullptr) at.mean[row] = mean;
    if (threadIdx.x == 0 && at.inverse != nullptr) at.inverse[row] = inverse;
  }
}

// Null: incoming and dsum where there is none. The last three are [blocks, channels], each block's part of
// the sums over rows that are the gradients of scale, shift and bias.
template <typename Problem>
struct ResidualLayerNormGradient {
  using T = typename Problem::T;
  const T* dy;
  const T* sum;
  const T* incoming;
  const float* scale;
  const float* mean;
  const float* inverse;
  const int64* counter;
  T* dsum;
  T* dbranch;
  float* dscale;
  float* dshift;
  float* dbias;
};

// With g = dy scale and n = the normalized sum: dsum = inverse (g - mean(g) - n mean(g n)) + incoming.
template <typename Problem>
__device__ void residual_layer_norm_gradient(const ResidualLayerNormGradient<Problem>& at) {
  using T = typename Problem::T;
  constexpr int W = Problem::width;
  __shared__ float scratch[2 * Problem::threads / 32];
  float dscale[Problem::packs][W] = {};
  float dshift[Problem::packs][W] = {};
  float dbias[Problem::packs][W] = {};
  for (int64 row = blockIdx.x; row < Problem::rows; row += gridDim.x) {
    const float mean = at.mean[row];
    const float inverse = at.inverse[row];
    float g[Problem::packs][W];
    float n[Problem::packs][W];
    float sum_g = 0;
    float sum_gn = 0;
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      const int c = first_channel<Problem>(p);
      if (c >= Problem::channels) continue;
      const int64 place = row * Problem::channels + c;
      const Pack<T, W> dy = load<W>(at.dy + place);
      const Pack<T, W> sum = load<W>(at.sum + place);
#pragma unroll
      for (int k = 0; k < W; ++k) {
        const float gradient = widen(dy.at[k]);
        n[p][k] = (widen(sum.at[k]) - mean) * inverse;
        g[p][k] = gradient * at.scale[c + k];
        sum_g += g[p][k];
        sum_gn += g[p][k] * n[p][k];
        dscale[p][k] += gradient * n[p][k];
        dshift[p][k] += gradient;
      }
    }
    add_over_block<Problem::threads>(sum_g, sum_gn, scratch);
    const float mean_g = sum_g / Problem::channels;
    const float mean_gn = sum_gn / Problem::channels;
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      const int c = first_channel<Problem>(p);
      if (c >= Problem::channels) continue;
      const int64 place = row * Problem::channels + c;
      float values[W];
#pragma unroll
      for (int k = 0; k < W; ++k) values[k] = inverse * (g[p][k] - mean_g - n[p][k] * mean_gn);
      if (at.incoming != nullptr) {
        const Pack<T, W> incoming = load<W>(at.incoming + place);
#pragma unroll
        for (int k = 0; k < W; ++k) values[k] += widen(incoming.at[k]);
      }
      // Both are rounded as memory holds them: other nodes read the former, and the bias's gradient adds the
      // latter.
      Pack<T, W> out;
#pragma unroll
      for (int k = 0; k < W; ++k) {
        out.at[k] = narrow<T>(values[k]);
        values[k] = widen(out.at[k]);
      }
      if (at.dsum != nullptr) store<W>(at.dsum + place, out);
      drop<Problem>(at.counter, place, values);
#pragma unroll
      for (int k = 0; k < W; ++k) {
        out.at[k] = narrow<T>(values[k]);
        dbias[p][k] += widen(out.at[k]);
      }
      store<W>(at.dbranch + place, out);
    }
  }
#pragma unroll
  for (int p = 0; p < Problem::packs; ++p) {
    const int c = first_channel<Problem>(p);
    if (c >= Problem::channels) continue;
#pragma unroll
    for (int k = 0; k < W; ++k) {
      const int64 part = int64{blockIdx.x} * Problem::channels + c + k;
      at.dscale[part] = dscale[p][k];
      at.dshift[part] = dshift[p][k];
      at.dbias[part] = dbias[p][k];
    }
  }
}

}  // namespace tessera
