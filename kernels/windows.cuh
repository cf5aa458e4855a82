// Pooling and plain convolution of channels-last tensors over three spatial axes; missing ones have extent 1.
// P, the problem, holds the extents as constants: images, channels, input[3], output[3], window[3],
// strides[3], padding[3] and, of convolutions, dilations[3], groups and outputs (channels of the result).
#pragma once

#include "reduce.cuh"

namespace tessera {

template <typename F>
__device__ inline void for_each_element(int64 count, F function) {
  for (int64 i = int64{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64{gridDim.x} * blockDim.x) {
    function(i);
  }
}

// An index into [images, a, b, c, channels].
struct Place {
  int64 image;
  int64 at[3];
  int64 channel;
};
__device__ inline Place place_of(int64 index, const int64 (&extents)[3], int64 channels) {
  Place place;
  place.channel = index % channels;
  index /= channels;
  for (int axis = 2; axis >= 0; --axis) {
    place.at[axis] = index % extents[axis];
    index /= extents[axis];
  }
  place.image = index;
  return place;
}
__device__ inline int64 index_of(int64 image, int64 a, int64 b, int64 c, int64 channel,
                                 const int64 (&extents)[3], int64 channels) {
  return (((image * extents[0] + a) * extents[1] + b) * extents[2] + c) * channels + channel;
}

// The windows over an input element: outputs first..last along an axis.
struct Range {
  int64 first;
  int64 last;
};
template <typename P>
__device__ inline Range windows_over(const P& p, int axis, int64 at) {
  const int64 high = at + p.padding[axis];
  const int64 low = high - p.window[axis] + 1;
  const int64 first = low <= 0 ? 0 : (low + p.strides[axis] - 1) / p.strides[axis];
  const int64 last = high / p.strides[axis];
  return {first, last < p.output[axis] ? last : p.output[axis] - 1};
}
// The part of output element `at`'s window that lies inside the image, as window positions.
template <typename P>
__device__ inline Range inside(const P& p, int axis, int64 at) {
  const int64 start = at * p.strides[axis] - p.padding[axis];
  const int64 end = start + p.window[axis] < p.input[axis] ? p.window[axis] : p.input[axis] - start;
  return {start < 0 ? -start : 0, end - 1};
}
template <typename P>
__device__ inline int64 pixels(const P& p, const int64 (&extents)[3]) {
  return p.images * extents[0] * extents[1] * extents[2];
}

template <typename T, typename P>
__device__ void max_pool(const P& p, const T* x, T* y, uint8* position) {
  for_each_element(pixels(p, p.output) * p.channels, [&](int64 index) {
    const Place to = place_of(index, p.output, p.channels);
    const Range a = inside(p, 0, to.at[0]), b = inside(p, 1, to.at[1]), c = inside(p, 2, to.at[2]);
    bool any = false;
    T best{};
    int64 found = 0;
    for (int64 i = a.first; i <= a.last; ++i) {
      for (int64 j = b.first; j <= b.last; ++j) {
        for (int64 k = c.first; k <= c.last; ++k) {
          const T own =
              x[index_of(to.image, to.at[0] * p.strides[0] - p.padding[0] + i,
                         to.at[1] * p.strides[1] - p.padding[1] + j,
                         to.at[2] * p.strides[2] - p.padding[2] + k, to.channel, p.input, p.channels)];
          if (!any || widen(own) > widen(best) || (is_nan(widen(own)) && !is_nan(widen(best)))) {
            best = own;
            found = (i * p.window[1] + j) * p.window[2] + k;
          }
          any = true;
        }
      }
    }
    y[index] = best;
    position[index] = static_cast<uint8>(found);
  });
}

// Gathers from every window over the element, so that nothing is added atomically.
template <typename T, typename P>
__device__ void max_pool_gradient(const P& p, const T* dy, const uint8* position, T* dx) {
  for_each_element(pixels(p, p.input) * p.channels, [&](int64 index) {
    const Place at = place_of(index, p.input, p.channels);
    const Range a = windows_over(p, 0, at.at[0]), b = windows_over(p, 1, at.at[1]),
                c = windows_over(p, 2, at.at[2]);
    Accumulator<T> sum = 0;
    for (int64 i = a.first; i <= a.last; ++i) {
      for (int64 j = b.first; j <= b.last; ++j) {
        for (int64 k = c.first; k <= c.last; ++k) {
          const int64 from = index_of(at.image, i, j, k, at.channel, p.output, p.channels);
          const int64 own = ((at.at[0] + p.padding[0] - i * p.strides[0]) * p.window[1] +
                             (at.at[1] + p.padding[1] - j * p.strides[1])) *
                                p.window[2] +
                            (at.at[2] + p.padding[2] - k * p.strides[2]);
          if (position[from] == own) sum += widen(dy[from]);
        }
      }
    }
    dx[index] = narrow<T>(sum);
  });
}

// How many elements a window counts.
template <typename P>
__device__ inline int64 counted(const P& p, int64 a, int64 b, int64 c) {
  if (p.count_padding) return p.window[0] * p.window[1] * p.window[2];
  const Range i = inside(p, 0, a), j = inside(p, 1, b), k = inside(p, 2, c);
  return (i.last - i.first + 1) * (j.last - j.first + 1) * (k.last - k.first + 1);
}

template <typename T, typename P>
__device__ void average_pool(const P& p, const T* x, T* y) {
  for_each_element(pixels(p, p.output) * p.channels, [&](int64 index) {
    const Place to = place_of(index, p.output, p.channels);
    const Range a = inside(p, 0, to.at[0]), b = inside(p, 1, to.at[1]), c = inside(p, 2, to.at[2]);
    Accumulator<T> sum = 0;
    for (int64 i = a.first; i <= a.last; ++i) {
      for (int64 j = b.first; j <= b.last; ++j) {
        for (int64 k = c.first; k <= c.last; ++k) {
          sum +=
              widen(x[index_of(to.image, to.at[0] * p.strides[0] - p.padding[0] + i,
                               to.at[1] * p.strides[1] - p.padding[1] + j,
                               to.at[2] * p.strides[2] - p.padding[2] + k, to.channel, p.input, p.channels)]);
        }
      }
    }
    y[index] = narrow<T>(sum / static_cast<Accumulator<T>>(counted(p, to.at[0], to.at[1], to.at[2])));
  });
}

template <typename T, typename P>
__device__ void average_pool_gradient(const P& p, const T* dy, T* dx) {
  for_each_element(pixels(p, p.input) * p.channels, [&](int64 index) {
    const Place at = place_of(index, p.input, p.channels);
    const Range a = windows_over(p, 0, at.at[0]), b = windows_over(p, 1, at.at[1]),
                c = windows_over(p, 2, at.at[2]);
    Accumulator<T> sum = 0;
    for (int64 i = a.first; i <= a.last; ++i) {
      for (int64 j = b.first; j <= b.last; ++j) {
        for (int64 k = c.first; k <= c.last; ++k) {
          sum += Accumulator<T>(widen(dy[index_of(at.image, i, j, k, at.channel, p.output, p.channels)])) /
                 static_cast<Accumulator<T>>(counted(p, i, j, k));
        }
      }
    }
    dx[index] = narrow<T>(sum);
  });
}

// Plain loops for what no library takes: correct for every type, group count and dilation, and slow.
// x: [N, input, C], weight: [K, window, C / groups], y: [N, output, K].
template <typename T, typename P>
__device__ void convolution(const P& p, const T* x, const T* weight, const T* bias, T* y) {
  const int64 own_inputs = p.channels / p.groups;
  const int64 own_outputs = p.outputs / p.groups;
  for_each_element(pixels(p, p.output) * p.outputs, [&](int64 index) {
    const Place to = place_of(index, p.output, p.outputs);
    const int64 first = to.channel / own_outputs * own_inputs;
    Accumulator<T> sum = bias == nullptr ? Accumulator<T>(0) : Accumulator<T>(widen(bias[to.channel]));
    for (int64 i = 0; i < p.window[0]; ++i) {
      const int64 a = to.at[0] * p.strides[0] - p.padding[0] + i * p.dilations[0];
      if (a < 0 || a >= p.input[0]) continue;
      for (int64 j = 0; j < p.window[1]; ++j) {
        const int64 b = to.at[1] * p.strides[1] - p.padding[1] + j * p.dilations[1];
        if (b < 0 || b >= p.input[1]) continue;
        for (int64 k = 0; k < p.window[2]; ++k) {
          const int64 c = to.at[2] * p.strides[2] - p.padding[2] + k * p.dilations[2];
          if (c < 0 || c >= p.input[2]) continue;
          const T* from = x + index_of(to.image, a, b, c, first, p.input, p.channels);
          const T* by = weight + index_of(to.channel, i, j, k, 0, p.window, own_inputs);
          for (int64 m = 0; m < own_inputs; ++m) sum += Accumulator<T>(widen(from[m])) * widen(by[m]);
        }
      }
    }
    y[index] = narrow<T>(sum);
  });
}

template <typename T, typename P>
__device__ void convolution_data_gradient(const P& p, const T* dy, const T* weight, T* dx) {
  const int64 own_inputs = p.channels / p.groups;
  const int64 own_outputs = p.outputs / p.groups;
  for_each_element(pixels(p, p.input) * p.channels, [&](int64 index) {
    const Place at = place_of(index, p.input, p.channels);
    const int64 first = at.channel / own_inputs * own_outputs;
    Accumulator<T> sum = 0;
    for (int64 i = 0; i < p.window[0]; ++i) {
      const int64 a = at.at[0] + p.padding[0] - i * p.dilations[0];
      if (a < 0 || a % p.strides[0] != 0 || a / p.strides[0] >= p.output[0]) continue;
      for (int64 j = 0; j < p.window[1]; ++j) {
        const int64 b = at.at[1] + p.padding[1] - j * p.dilations[1];
        if (b < 0 || b % p.strides[1] != 0 || b / p.strides[1] >= p.output[1]) continue;
        for (int64 k = 0; k < p.window[2]; ++k) {
          const int64 c = at.at[2] + p.padding[2] - k * p.dilations[2];
          if (c < 0 || c % p.strides[2] != 0 || c / p.strides[2] >= p.output[2]) continue;
          const T* from = dy + index_of(at.image, a / p.strides[0], b / p.strides[1], c / p.strides[2], first,
                                        p.output, p.outputs);
          for (int64 m = 0; m < own_outputs; ++m) {
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
  constexpr int kThreads = 128;
  __shared__ Accumulator<T> room[kThreads];
  const int64 own_inputs = p.channels / p.groups;
  const int64 own_outputs = p.outputs / p.groups;
  const int64 weights = p.outputs * p.window[0] * p.window[1] * p.window[2] * own_inputs;
  for (int64 index = blockIdx.x; index < weights; index += gridDim.x) {
    const Place at = place_of(index, p.window, own_inputs);  // image: the output channel
    const int64 channel = at.image / own_outputs * own_inputs + at.channel;
    Accumulator<T> sum = 0;
    for (int64 pixel = threadIdx.x; pixel < pixels(p, p.output); pixel += kThreads) {
      const Place to = place_of(pixel, p.output, 1);
      int64 from[3];
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
    sum = combine_block<Sum, 1, kThreads>(sum, 0, static_cast<int>(threadIdx.x), room);
    if (threadIdx.x == 0) dweight[index] = narrow<T>(sum);
  }
}

}  // namespace tessera
