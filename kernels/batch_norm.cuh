// Batch normalization by the batch's own statistics and its gradients, with the residual's sum and the relu
// around them, as work of resident blocks.
#pragma once

#include "primitives.cuh"
#include "resident.cuh"

namespace tessera {

template <int V>
__device__ inline void load_channels(const float* from, int channel, float (&to)[V]) {
#pragma unroll
  for (int v = 0; v < V; ++v) to[v] = from[channel + v];
}

template <int V>
__device__ inline void store_channels(float* to, int channel, const float (&from)[V]) {
  if (to == nullptr) return;
#pragma unroll
  for (int v = 0; v < V; ++v) to[channel + v] = from[v];
}

// Before it is rounded. The same bits forward and backward, where the gradient finds the relu's mask with it.
template <typename T>
__device__ inline float normalized(T x, float mean, float factor, float bias) {
  return (widen(x) - mean) * factor + bias;
}

struct Nothing {};

// P, beside the plan: has_residual, has_relu, epsilon.
template <typename P>
struct BatchNormForward {
  using T = typename P::Element;
  static constexpr int V = Resident<P>::vector, kept = 1, passing = 0, changed = 0;
  using Item = Pack<T, V>;
  using Beside = Item;

  const T* x;
  const T* residual;  // null without one
  const float* scale;
  const float* bias;
  T* y;
  float* mean;  // null where nothing reads it
  float* variance;

  // The first row lies near enough to the mean that nothing cancels in the sum of squares. Later the mean.
  float center[V];
  float factor[V];
  float offset[V];

  __device__ void start(int channel) {
    const Item first = load<V>(x + channel);
#pragma unroll
    for (int v = 0; v < V; ++v) center[v] = widen(first.at[v]);
  }
  __device__ const T* source(int, bool) const {
    return x;
  }
  __device__ void take(int64, const Item (&kept)[1], const Item (&)[1], ChannelSums<V>& sums) const {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float shifted = widen(kept[0].at[v]) - center[v];
      sums.first[v] += shifted;
      sums.second[v] += shifted * shifted;
    }
  }
  __device__ void take_in_second_pass(const Item (&)[1], const Item (&)[1]) const {}
  __device__ void finish(int channel, const ChannelSums<V>& sums, bool writes) {
    load_channels(scale, channel, factor);
    load_channels(bias, channel, offset);
    float spread[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float difference = sums.first[v] / static_cast<float>(P::rows);
      spread[v] = op_maximum(sums.second[v] / static_cast<float>(P::rows) - difference * difference, 0.0f);
      center[v] += difference;
      factor[v] *= rsqrtf(spread[v] + P::epsilon);
    }
    if (!writes) return;
    store_channels(mean, channel, center);
    store_channels(variance, channel, spread);
  }
  __device__ Beside read_beside(int64 at) const {
    if constexpr (P::has_residual) {
      return load<V>(residual + at);
    } else {
      return {};
    }
  }
  __device__ void write(int64 at, const Item (&kept)[1], const Beside& beside) const {
    Item result;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      float value = rounded<T>(normalized(kept[0].at[v], center[v], factor[v], offset[v]));
      if constexpr (P::has_residual) value = rounded<T>(value + widen(beside.at[v]));
      if constexpr (P::has_relu) value = op_relu(value);
      result.at[v] = narrow<T>(value);
    }
    store(y + at, result);
  }
};

// P, beside the plan: has_sum, masks_by_result, masks_by_x, emits, epsilon. With n the normalized x and dz
// the masked sum of the gradients: dbias = sum dz, dscale = sum dz n,
// dx = scale / deviation (dz - mean(dz) - n mean(dz n)).
template <typename P>
struct BatchNormBackward {
  using T = typename P::Element;
  static constexpr int V = Resident<P>::vector, kept = 2;
  static constexpr int passing = (P::has_sum ? 1 : 0) + (P::masks_by_result ? 1 : 0);
  // The gradient, kept first, becomes dz.
  static constexpr int changed = P::has_sum || P::masks_by_result || P::masks_by_x ? 1 : 0;
  using Item = Pack<T, V>;
  using Passing = Item[passing > 0 ? passing : 1];
  using Beside = Nothing;

  const T* x;
  const T* dy;
  const T* dy2;  // null without has_sum
  const T* y;    // null without masks_by_result
  const float* scale;
  const float* bias;  // null without masks_by_x
  const float* mean;
  const float* variance;
  T* dx;
  float* dscale;  // null where nothing reads it
  float* dbias;
  T* dz;  // null without emits

  float center[V];
  float factor[V];       // scale / deviation
  float offset[V];       // bias
  float correlation[V];  // 1 / deviation, later mean(dz n) / deviation
  float level[V];        // mean(dz)

  __device__ void start(int channel) {
    load_channels(mean, channel, center);
    load_channels(scale, channel, factor);
    load_channels(variance, channel, correlation);
    if constexpr (P::masks_by_x) load_channels(bias, channel, offset);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      correlation[v] = rsqrtf(correlation[v] + P::epsilon);
      factor[v] *= correlation[v];
    }
  }
  __device__ const T* source(int n, bool second_pass) const {
    if (n == 1) return x;
    if (P::emits && second_pass) return n == 0 ? dz : nullptr;
    return n == 0 ? dy : n == 2 && P::has_sum ? dy2 : y;
  }
  __device__ void make_gradient(Item (&kept)[2], const Passing& passing) const {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      T gradient = kept[0].at[v];
      if constexpr (P::has_sum) gradient = narrow<T>(widen(gradient) + widen(passing[0].at[v]));
      bool passes = true;
      if constexpr (P::masks_by_result) passes = widen(passing[P::has_sum ? 1 : 0].at[v]) > 0;
      if constexpr (P::masks_by_x)
        passes = is_positive_when_rounded<T>(normalized(kept[1].at[v], center[v], factor[v], offset[v]));
      kept[0].at[v] = passes ? gradient : narrow<T>(0.0f);
    }
  }
  __device__ void take(int64 at, Item (&kept)[2], const Passing& passing, ChannelSums<V>& sums) const {
    make_gradient(kept, passing);
    if constexpr (P::emits) store(dz + at, kept[0]);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float gradient = widen(kept[0].at[v]);
      sums.first[v] += gradient;
      sums.second[v] += gradient * (widen(kept[1].at[v]) - center[v]);
    }
  }
  __device__ void take_in_second_pass(Item (&kept)[2], const Passing& passing) const {
    if constexpr (!P::emits) make_gradient(kept, passing);
  }
  __device__ void finish(int channel, const ChannelSums<V>& sums, bool writes) {
    float by_scale[V];
#pragma unroll
    for (int v = 0; v < V; ++v) by_scale[v] = sums.second[v] * correlation[v];
    if (writes) {
      store_channels(dscale, channel, by_scale);
      store_channels(dbias, channel, sums.first);
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      correlation[v] *= by_scale[v] / static_cast<float>(P::rows);
      level[v] = sums.first[v] / static_cast<float>(P::rows);
    }
  }
  __device__ Beside read_beside(int64) const {
    return {};
  }
  __device__ void write(int64 at, const Item (&kept)[2], const Beside&) const {
    Item result;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const float rest =
          widen(kept[0].at[v]) - level[v] - (widen(kept[1].at[v]) - center[v]) * correlation[v];
      result.at[v] = narrow<T>(rest * factor[v]);
    }
    store(dx + at, result);
  }
};

}  // namespace tessera
