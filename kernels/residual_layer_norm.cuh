// layer_norm(residual + dropout(branch + bias)) and its gradient: a block goes over whole rows, some at a
// time so that enough reads are under way, of which each thread keeps what it reads in registers.
//
// Problem: T, the type of activations [rows, channels]; threads of a block; width, the elements that a thread
// moves at a time; packs, how often it does so for a row; group, the rows at a time; rows, channels, stream,
// rate and factor of the dropout, epsilon, centered: otherwise means are 0, and norms those by the root mean
// square. Thread t has the channels from (p * threads + t) * width on, for each p < packs.
#pragma once

#include "block_sums.cuh"
#include "pairs.cuh"
#include "random.cuh"

namespace tessera {

template <typename Problem>
__device__ inline int first_channel(int pack) {
  return (pack * Problem::threads + static_cast<int>(threadIdx.x)) * Problem::width;
}

// What dropout makes of the elements from `index` on.
template <typename Problem>
__device__ inline void drop(const int64* counter, int64 index, float (&values)[Problem::width]) {
  constexpr uint32 least = least_word(Problem::rate);
  uint32 words[Problem::width];
  random_words(counter, Problem::stream, static_cast<uint64>(index), words);
#pragma unroll
  for (int k = 0; k < Problem::width; ++k) values[k] = words[k] >= least ? values[k] * Problem::factor : 0.0f;
}

// Null: bias, residual, shift, counter, sum, mean and inverse where there is none. Without any of them it is
// the norm of the branch.
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
  constexpr int R = Problem::group;
  __shared__ alignas(16) float scratch[2][R * Problem::threads / 32];
  for (int64 first = int64{blockIdx.x} * R; first < Problem::rows; first += int64{gridDim.x} * R) {
    Pack<T, W> sums[R][Problem::packs];  // first of the branch
    Pack<T, W> residuals[R][Problem::packs];
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int p = 0; p < Problem::packs; ++p) {
        const int c = first_channel<Problem>(p);
        if (first + r >= Problem::rows || c >= Problem::channels) continue;
        sums[r][p] = load<W>(at.branch + (first + r) * Problem::channels + c);
        if (at.residual != nullptr)
          residuals[r][p] = load<W>(at.residual + (first + r) * Problem::channels + c);
      }
    }
    float means[R] = {};
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      const int c = first_channel<Problem>(p);
      if (c >= Problem::channels) continue;
      Pack<T, W> bias;
      if (at.bias != nullptr) bias = load<W>(at.bias + c);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (first + r >= Problem::rows) continue;
        const int64 place = (first + r) * Problem::channels + c;
        float values[W];
        widen_all(values, sums[r][p]);
        if (at.bias != nullptr) {
#pragma unroll
          for (int k = 0; k < W; ++k) values[k] += widen(bias.at[k]);
        }
        if (at.counter != nullptr) drop<Problem>(at.counter, place, values);
        if (at.residual != nullptr) {
          // What the gradient will read is what is normalized: the rounded sum.
          float residual[W];
          widen_all(residual, residuals[r][p]);
#pragma unroll
          for (int k = 0; k < W; ++k) values[k] += residual[k];
          sums[r][p] = narrow_all<T>(values);
          widen_all(values, sums[r][p]);
        }
        if constexpr (Problem::centered) {
#pragma unroll
          for (float value : values) means[r] += value;
        }
        if (at.sum != nullptr) store<W>(at.sum + place, sums[r][p]);
      }
    }
    if constexpr (Problem::centered) add_over_block<Problem::threads>(means, scratch[0]);
    float inverses[R] = {};
#pragma unroll
    for (int r = 0; r < R; ++r) {
      means[r] /= Problem::channels;
#pragma unroll
      for (int p = 0; p < Problem::packs; ++p) {
        if (first + r >= Problem::rows || first_channel<Problem>(p) >= Problem::channels) continue;
        float values[W];
        widen_all(values, sums[r][p]);
#pragma unroll
        for (float value : values) inverses[r] += (value - means[r]) * (value - means[r]);
      }
    }
    add_over_block<Problem::threads>(inverses, scratch[1]);
#pragma unroll
    for (float& inverse : inverses) inverse = 1 / sqrtf(inverse / Problem::channels + Problem::epsilon);
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      const int c = first_channel<Problem>(p);
      if (c >= Problem::channels) continue;
      const Pack<float, W> scale = load<W>(at.scale + c);
      Pack<float, W> shift = {};
      if (at.shift != nullptr) shift = load<W>(at.shift + c);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (first + r >= Problem::rows) continue;
        float y[W];
        widen_all(y, sums[r][p]);
#pragma unroll
        for (int k = 0; k < W; ++k) y[k] = (y[k] - means[r]) * inverses[r] * scale.at[k] + shift.at[k];
        store<W>(at.y + (first + r) * Problem::channels + c, narrow_all<T>(y));
      }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (threadIdx.x != 0 || first + r >= Problem::rows) continue;
      if (at.mean != nullptr) at.mean[first + r] = means[r];
      if (at.inverse != nullptr) at.inverse[first + r] = inverses[r];
    }
  }
}

// Null: incoming, dsum, and counter with dbranch where there is none; not centered, the mean is not read. The
// last three are [blocks, channels], each block's part of the sums over rows that are the gradients of scale,
// shift and bias, null where nobody reads them.
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
  constexpr int R = Problem::group;
  __shared__ alignas(16) float scratch[2][2 * R * Problem::threads / 32];
  int turn = 0;
  float dscale[Problem::packs][W] = {};
  float dshift[Problem::packs][W] = {};
  float dbias[Problem::packs][W] = {};
  for (int64 first = int64{blockIdx.x} * R; first < Problem::rows; first += int64{gridDim.x} * R) {
    Pack<T, W> gradients[R][Problem::packs];
    Pack<T, W> sums[R][Problem::packs];
    Pack<T, W> incoming[R][Problem::packs];
    float means[R];
    float inverses[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (first + r >= Problem::rows) continue;
      means[r] = Problem::centered ? at.mean[first + r] : 0.0f;
      inverses[r] = at.inverse[first + r];
#pragma unroll
      for (int p = 0; p < Problem::packs; ++p) {
        const int c = first_channel<Problem>(p);
        if (c >= Problem::channels) continue;
        const int64 place = (first + r) * Problem::channels + c;
        gradients[r][p] = load<W>(at.dy + place);
        sums[r][p] = load<W>(at.sum + place);
        if (at.incoming != nullptr) incoming[r][p] = load<W>(at.incoming + place);
      }
    }
    float totals[2 * R] = {};  // of g and g n, row by row
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      const int c = first_channel<Problem>(p);
      if (c >= Problem::channels) continue;
      const Pack<float, W> scale = load<W>(at.scale + c);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (first + r >= Problem::rows) continue;
        float dy[W];
        float x[W];
        widen_all(dy, gradients[r][p]);
        widen_all(x, sums[r][p]);
#pragma unroll
        for (int k = 0; k < W; ++k) {
          const float n = (x[k] - means[r]) * inverses[r];
          const float g = dy[k] * scale.at[k];
          if constexpr (Problem::centered) totals[2 * r] += g;
          totals[2 * r + 1] += g * n;
          dscale[p][k] += dy[k] * n;
          dshift[p][k] += dy[k];
        }
      }
    }
    add_over_block<Problem::threads>(totals, scratch[turn]);
    turn ^= 1;
#pragma unroll
    for (int p = 0; p < Problem::packs; ++p) {
      const int c = first_channel<Problem>(p);
      if (c >= Problem::channels) continue;
      const Pack<float, W> scale = load<W>(at.scale + c);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (first + r >= Problem::rows) continue;
        // What all channels get from the row, by their distance from the mean.
        const float slope = -totals[2 * r + 1] / Problem::channels * inverses[r] * inverses[r];
        const float start = -totals[2 * r] / Problem::channels * inverses[r];
        const int64 place = (first + r) * Problem::channels + c;
        float values[W];
        float x[W];
        widen_all(values, gradients[r][p]);
        widen_all(x, sums[r][p]);
#pragma unroll
        for (int k = 0; k < W; ++k)
          values[k] = values[k] * scale.at[k] * inverses[r] + ((x[k] - means[r]) * slope + start);
        if (at.incoming != nullptr) {
          float others[W];
          widen_all(others, incoming[r][p]);
#pragma unroll
          for (int k = 0; k < W; ++k) values[k] += others[k];
        }
        // Both are rounded as memory holds them: other nodes read the former, and the bias's gradient adds
        // the latter.
        Pack<T, W> out = narrow_all<T>(values);
        if (at.dsum != nullptr) store<W>(at.dsum + place, out);
        if (at.dbranch == nullptr) continue;
        widen_all(values, out);
        drop<Problem>(at.counter, place, values);
        out = narrow_all<T>(values);
        widen_all(values, out);
#pragma unroll
        for (int k = 0; k < W; ++k) dbias[p][k] += values[k];
        store<W>(at.dbranch + place, out);
      }
    }
  }
#pragma unroll
  for (int p = 0; p < Problem::packs; ++p) {
    const int c = first_channel<Problem>(p);
    if (c >= Problem::channels) continue;
#pragma unroll
    for (int k = 0; k < W; ++k) {
      const int64 part = int64{blockIdx.x} * Problem::channels + c + k;
      if (at.dscale != nullptr) at.dscale[part] = dscale[p][k];
      if (at.dshift != nullptr) at.dshift[part] = dshift[p][k];
      if (at.dbias != nullptr) at.dbias[part] = dbias[p][k];
    }
  }
}

}  // namespace tessera
