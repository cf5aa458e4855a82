#include "device/cpu/convolution/depthwise_line.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/convolution/depthwise_line.cpp"
#include <algorithm>
#include <type_traits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tessera/base/rounding.h"

#include "device/cpu/convolution/loop_epilogue-inl.h"
#include "device/cpu/runtime/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Pixels from `first` on, of which the elements of the window in `taps` are on the image.
template <int kPixels>
void pixels(const DepthwiseLine& line, int64_t first, Range taps) {
  const int64_t channels = line.channels;
  const int64_t between = line.axis.stride * channels;  // what neighbors read
  const int64_t step = line.axis.dilation * channels;
  const int64_t start = line.axis.position(first, taps.begin) * channels;
  float* const y = line.y + first * channels;
  const float* const residual =
      line.epilogue.residual == nullptr ? nullptr : line.epilogue.residual + first * channels;
  for_each_vector(channels, [&](auto d, int64_t c) {
    using V = hn::Vec<decltype(d)>;
    const V bias = line.epilogue.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, line.epilogue.bias + c);
    V sums[kPixels];
    for (int i = 0; i < kPixels; ++i) sums[i] = bias;
    for (const WindowLine& read : line.lines) {
      const float* x = read.x + start + c;
      const float* weight = line.weight + (read.window * line.axis.window + taps.begin) * channels + c;
      for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
        const V factor = hn::LoadU(d, weight);
        for (int i = 0; i < kPixels; ++i)
          sums[i] = hn::MulAdd(hn::LoadU(d, x + i * between), factor, sums[i]);
        x += step;
        weight += channels;
      }
    }
    if (residual != nullptr) {
      for (int i = 0; i < kPixels; ++i) sums[i] = hn::Add(sums[i], hn::LoadU(d, residual + i * channels + c));
    }
    const V low = hn::Set(d, line.epilogue.low);
    const V high = hn::Set(d, line.epilogue.high);
    for (int i = 0; i < kPixels; ++i) {
      const V value = within_limits(sums[i], low, high);
      float* to = y + i * channels + c;
      line.stream ? hn::Stream(value, d, to) : hn::StoreU(value, d, to);
    }
  });
}

// The pixels [begin, end), whose windows are on the image.
void inside(const DepthwiseLine& line, int64_t begin, int64_t end) {
  const Range all{0, line.axis.window};
  const auto step = [&](auto count) {
    for (; begin + count <= end; begin += count) pixels<count>(line, begin, all);
  };
  step(std::integral_constant<int, 8>());
  step(std::integral_constant<int, 4>());
  step(std::integral_constant<int, 2>());
  step(std::integral_constant<int, 1>());
}

void at_edge(const DepthwiseLine& line, int64_t pixel) {
  Range taps{0, line.axis.window};
  const auto on_image = [&](int64_t tap) { return line.axis.holds(line.axis.position(pixel, tap)); };
  while (taps.begin < taps.end && !on_image(taps.begin)) ++taps.begin;
  while (taps.begin < taps.end && !on_image(taps.end - 1)) --taps.end;
  pixels<1>(line, pixel, taps);
}

void whole(const DepthwiseLine& line) {
  const WindowAxis& axis = line.axis;
  const int64_t reach = (axis.window - 1) * axis.dilation;
  const int64_t room = axis.source - 1 - reach + axis.padding;  // the last place of a whole window
  const int64_t begin = std::min(quotient_rounded_up(axis.padding, axis.stride), axis.destination);
  const int64_t end = room < 0 ? begin : std::clamp(room / axis.stride + 1, begin, axis.destination);
  for (int64_t pixel = 0; pixel < begin; ++pixel) at_edge(line, pixel);
  inside(line, begin, end);
  for (int64_t pixel = end; pixel < axis.destination; ++pixel) at_edge(line, pixel);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(whole);

void depthwise_line(const DepthwiseLine& line) {
  HWY_DYNAMIC_DISPATCH(whole)(line);
}

}  // namespace tessera::cpu
#endif
