// Plain convolutions for what no library takes: correct for every type, group count and dilation, and slow.
// x: [N, input, C], weight: [K, window, C / groups], y: [N, output, K].
#pragma once

#include "block_sizes.h"
#include "byte_products.cuh"
#include "windows.cuh"

namespace tessera {

// Of bytes, which may be of two types, the sums are whole numbers of a third.
template <typename T, typename A, typename B, typename P>
__device__ void convolution(const P& p, const A* x, const B* weight, const T* bias, T* y) {
  constexpr typename P::index own_inputs = P().channels / P().groups;
  const typename P::index own_outputs = p.outputs / p.groups;
  for_each_element<typename P::index>(pixels(p, p.output) * p.outputs, [&](typename P::index index) {
    const auto to = place_of(index, p.output, p.outputs);
    const typename P::index first = to.channel / own_outputs * own_inputs;
    using Wide = typename ProductSumOf<T, A>::type;
    Wide sum = bias == nullptr ? Wide(0) : Wide(widen(bias[to.channel]));
    for (typename P::index i = 0; i < p.window[0]; ++i) {
      const typename P::index a = to.at[0] * p.strides[0] - p.padding[0] + i * p.dilations[0];
      if (a < 0 || a >= p.input[0]) continue;
      for (typename P::index j = 0; j < p.window[1]; ++j) {
        const typename P::index b = to.at[1] * p.strides[1] - p.padding[1] + j * p.dilations[1];
        if (b < 0 || b >= p.input[1]) continue;
        for (typename P::index k = 0; k < p.window[2]; ++k) {
          const typename P::index c = to.at[2] * p.strides[2] - p.padding[2] + k * p.dilations[2];
          if (c < 0 || c >= p.input[2]) continue;
          const A* from = x + index_of(to.image, a, b, c, first, p.input, p.channels);
          const B* by = weight + index_of(to.channel, i, j, k, 0, p.window, own_inputs);
          sum = add_products<own_inputs>(sum, from, by);
        }
      }
    }
    y[index] = narrow<T>(sum);
  });
}

template <typename T, typename P>
__device__ void convolution_data_gradient(const P& p, const T* dy, const T* weight, T* dx) {
  const typename P::index own_inputs = p.channels / p.groups;
  const typename P::index own_outputs = p.outputs / p.groups;
  for_each_element<typename P::index>(pixels(p, p.input) * p.channels, [&](typename P::index index) {
    const auto at = place_of(index, p.input, p.channels);
    const typename P::index first = at.channel / own_inputs * own_outputs;
    Accumulator<T> sum = 0;
    for (typename P::index i = 0; i < p.window[0]; ++i) {
      const typename P::index a = at.at[0] + p.padding[0] - i * p.dilations[0];
      if (a < 0 || a % p.strides[0] != 0 || a / p.strides[0] >= p.output[0]) continue;
      for (typename P::index j = 0; j < p.window[1]; ++j) {
        const typename P::index b = at.at[1] + p.padding[1] - j * p.dilations[1];
        if (b < 0 || b % p.strides[1] != 0 || b / p.strides[1] >= p.output[1]) continue;
        for (typename P::index k = 0; k < p.window[2]; ++k) {
          const typename P::index c = at.at[2] + p.padding[2] - k * p.dilations[2];
          if (c < 0 || c % p.strides[2] != 0 || c / p.strides[2] >= p.output[2]) continue;
          const T* from = dy + index_of(at.image, a / p.strides[0], b / p.strides[1], c / p.strides[2], first,
                                        p.output, p.outputs);
          for (typename P::index m = 0; m < own_outputs; ++m) {
            sum += Accumulator<T>(widen(from[m])) *
                   widen(weight[index_of(first + m, i, j, k, at.channel % own_inputs, p.window, own_inputs)]);
          }
        }
      }
    }
    dx[index] = narrow<T>(sum);
  });
}

// One block an element of the weight.
template <typename T, typename P>
__device__ void convolution_weight_gradient(const P& p, const T* x, const T* dy, T* dweight) {
  constexpr int kThreads = kWeightGradientThreads;
  __shared__ Accumulator<T> scratch[kThreads];
  const typename P::index own_inputs = p.channels / p.groups;
  const typename P::index own_outputs = p.outputs / p.groups;
  const typename P::index weights = p.outputs * p.window[0] * p.window[1] * p.window[2] * own_inputs;
  for (typename P::index index = blockIdx.x; index < weights; index += gridDim.x) {
    const auto at = place_of(index, p.window, own_inputs);  // image: the output channel
    const typename P::index channel = at.image / own_outputs * own_inputs + at.channel;
    Accumulator<T> sum = 0;
    for (typename P::index pixel = threadIdx.x; pixel < pixels(p, p.output); pixel += kThreads) {
      const auto to = place_of(pixel, p.output, 1);
      typename P::index from[3];
      bool outside = false;
      for (int axis = 0; axis < 3; ++axis) {
        from[axis] = to.at[axis] * p.strides[axis] - p.padding[axis] + at.at[axis] * p.dilations[axis];
        outside = outside || from[axis] < 0 || from[axis] >= p.input[axis];
      }
      if (outside) continue;
      sum += Accumulator<T>(
                 widen(x[index_of(to.image, from[0], from[1], from[2], channel, p.input, p.channels)])) *
             widen(dy[pixel * p.outputs + at.image]);
    }
    sum = combine_block<Sum, 1, kThreads>(sum, 0, static_cast<int>(threadIdx.x), scratch);
    if (threadIdx.x == 0) dweight[index] = narrow<T>(sum);
  }
}

}  // namespace tessera
