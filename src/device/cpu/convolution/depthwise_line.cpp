#include "device/cpu/convolution/depthwise_line.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/convolution/depthwise_line.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/runtime/limits-inl.h"
#include "device/cpu/runtime/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Of a vector of channels, so many pixels at a time: what neighbors share is read once.
constexpr int kMostPixels = 8;

template <class D>
HWY_INLINE hn::Vec<D> bias_of(D d, const DepthwiseLine& line, int64_t channel) {
  return line.epilogue.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, line.epilogue.bias + channel);
}

// The first `count` of them, at `place` of the result.
template <int kPixels, class D>
HWY_INLINE void store(D d, const DepthwiseLine& line, int64_t place, int64_t count,
                      hn::Vec<D> (&sums)[kPixels]) {
  if (line.epilogue.residual != nullptr) {
    const float* residual = line.epilogue.residual + place;
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i, residual += line.y_pixel) {
      if (i < count) sums[i] = hn::Add(sums[i], hn::LoadU(d, residual));
    }
  }
  const auto low = hn::Set(d, line.epilogue.low);
  const auto high = hn::Set(d, line.epilogue.high);
  float* y = line.y + place;
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i, y += line.y_pixel) {
    if (i >= count) break;
    const auto value = within_limits(sums[i], low, high);
    line.stream ? hn::Stream(value, d, y) : hn::StoreU(value, d, y);
  }
}

// Any window.
void pixel(const DepthwiseLine& line, int64_t at) {
  const WindowAxis& axis = line.axis;
  for_each_vector(line.channels, [&](auto d, int64_t c) HWY_ATTR {
    hn::Vec<decltype(d)> sum[1] = {bias_of(d, line, c)};
    for (const WindowLine& read : line.lines) {
      for (int64_t tap = 0; tap < axis.window; ++tap) {
        const int64_t position = axis.position(at, tap);
        if (!axis.holds(position)) continue;
        const float* factor = line.weight + (read.window * axis.window + tap) * line.weight_element + c;
        sum[0] = hn::MulAdd(hn::LoadU(d, read.x + position * line.x_pixel + c), hn::LoadU(d, factor), sum[0]);
      }
    }
    store(d, line, at * line.y_pixel + c, /*count=*/1, sum);
  });
}

// `count` pixels from `first` on, of windows without dilation. Whole: all that they read is on the image, and
// they are the most.
template <int kTaps, int kStride, bool kWhole>
void pixels(const DepthwiseLine& line, int64_t first, int64_t count) {
  constexpr int kReads = (kMostPixels - 1) * kStride + kTaps;
  const int64_t start = line.axis.position(first, 0);
  for_each_vector(line.channels, [&](auto d, int64_t c) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V sums[kMostPixels];
    for (int i = 0; i < kMostPixels; ++i) sums[i] = bias_of(d, line, c);
    for (const WindowLine& read : line.lines) {
      const float* x = read.x + start * line.x_pixel + c;
      const float* weight = line.weight + read.window * kTaps * line.weight_element + c;
      V factors[kTaps];
      for (int tap = 0; tap < kTaps; ++tap, weight += line.weight_element)
        factors[tap] = hn::LoadU(d, weight);
      // In registers only if all of it is unrolled. Pointers that each follow from the one before would be
      // waited for.
      const int64_t pixel = line.x_pixel;
#pragma GCC unroll 32
      for (int at = 0; at < kReads; ++at) {
        const float* from = x + at % 4 * pixel;
        if (at % 4 == 3) x += 4 * pixel;
        if (!kWhole && !line.axis.holds(start + at)) continue;
        const V element = hn::LoadU(d, from);
#pragma GCC unroll 8
        for (int tap = 0; tap < kTaps; ++tap) {
          const int place = at - tap;  // times the stride, the pixel that has it under this tap
          if (place < 0 || place % kStride != 0 || place / kStride >= kMostPixels) continue;
          sums[place / kStride] = hn::MulAdd(element, factors[tap], sums[place / kStride]);
        }
      }
    }
    store(d, line, first * line.y_pixel + c, kWhole ? kMostPixels : count, sums);
  });
}

template <int kTaps, int kStride>
void usual(const DepthwiseLine& line) {
  const WindowAxis& axis = line.axis;
  for (int64_t first = 0; first < axis.destination; first += kMostPixels) {
    const int64_t count = std::min<int64_t>(kMostPixels, axis.destination - first);
    const bool whole = count == kMostPixels && axis.holds(axis.position(first, 0)) &&
                       axis.holds(axis.position(first + count - 1, kTaps - 1));
    whole ? pixels<kTaps, kStride, true>(line, first, count)
          : pixels<kTaps, kStride, false>(line, first, count);
  }
}

void whole_line(const DepthwiseLine& line) {
  const auto is = [&](int64_t window, int64_t stride) {
    return line.axis.window == window && line.axis.stride == stride && line.axis.dilation == 1;
  };
  if (is(3, 1)) return usual<3, 1>(line);
  if (is(3, 2)) return usual<3, 2>(line);
  if (is(5, 1)) return usual<5, 1>(line);
  if (is(5, 2)) return usual<5, 2>(line);
  for (int64_t at = 0; at < line.axis.destination; ++at) pixel(line, at);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(whole_line);

void depthwise_line(const DepthwiseLine& line) {
  HWY_DYNAMIC_DISPATCH(whole_line)(line);
  activate(line.epilogue.activation, line.y, line.y_pixel, line.axis.destination, line.channels);
}

}  // namespace tessera::cpu
#endif
