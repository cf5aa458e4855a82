// Windows over channels-last tensors of three spatial axes; missing ones have extent 1.
// P, the problem, holds the extents as constants of its type `index`: images, channels, input[3], output[3],
// window[3], strides[3], padding[3] and, of convolutions, dilations[3], groups and outputs (channels of the
// result).
#pragma once

#include "reduce.cuh"

namespace tessera {

template <typename I, typename F>
__device__ inline void for_each_element(I count, F function) {
  for (I i = static_cast<I>(blockIdx.x) * static_cast<I>(blockDim.x) + static_cast<I>(threadIdx.x); i < count;
       i += static_cast<I>(gridDim.x) * static_cast<I>(blockDim.x)) {
    function(i);
  }
}

// An index into [images, a, b, c, channels].
template <typename I>
struct Place {
  I image;
  I at[3];
  I channel;
};
template <typename I>
__device__ inline Place<I> place_of(I index, const I (&extents)[3], I channels) {
  Place<I> place;
  place.channel = index % channels;
  index /= channels;
  for (int axis = 2; axis >= 0; --axis) {
    place.at[axis] = index % extents[axis];
    index /= extents[axis];
  }
  place.image = index;
  return place;
}
template <typename I>
__device__ inline I index_of(I image, I a, I b, I c, I channel, const I (&extents)[3], I channels) {
  return (((image * extents[0] + a) * extents[1] + b) * extents[2] + c) * channels + channel;
}

// The windows over an input element: outputs first..last along an axis.
template <typename I>
struct Range {
  I first;
  I last;
};
template <typename P, typename I>
__device__ inline Range<I> windows_over(const P& p, int axis, I at) {
  const I high = at + p.padding[axis];
  const I low = high - p.window[axis] + 1;
  const I first = low <= 0 ? 0 : (low + p.strides[axis] - 1) / p.strides[axis];
  const I last = high / p.strides[axis];
  return {first, last < p.output[axis] ? last : p.output[axis] - 1};
}
// The part of output element `at`'s window that lies inside the image, as window positions.
template <typename P, typename I>
__device__ inline Range<I> inside(const P& p, int axis, I at) {
  const I start = at * p.strides[axis] - p.padding[axis];
  const I end = start + p.window[axis] < p.input[axis] ? p.window[axis] : p.input[axis] - start;
  return {start < 0 ? -start : 0, end - 1};
}
template <typename P, typename I>
__device__ inline I pixels(const P& p, const I (&extents)[3]) {
  return p.images * extents[0] * extents[1] * extents[2];
}

}  // namespace tessera
