// A line of a convolution whose channels are apart: each result reads its own channel alone. fp32.
#pragma once

#include <cstdint>
#include <span>

#include "device/cpu/convolution/window_lines.h"
#include "device/cpu/panels/loop_epilogue.h"

namespace tessera::cpu {

// Some channels of it: neighbors in memory are so many floats apart, where they are not all.
struct DepthwiseLine {
  std::span<const WindowLine> lines;  // of the image, that the window reads
  WindowAxis axis;
  int64_t channels = 0;
  int64_t x_pixel = 0;            // from one pixel to the next
  const float* weight = nullptr;  // [lines of the window, its elements along the line, channels]
  int64_t weight_element = 0;     // from one element of the window to the next
  LoopEpilogue epilogue;          // its residual begins where y does, and lies as y does
  bool stream = false;            // write past the caches; whole vectors, and y is aligned to them then
  float* y = nullptr;             // [pixels of the result's line, channels]
  int64_t y_pixel = 0;            // from one pixel to the next
};
void depthwise_line(const DepthwiseLine& line);

}  // namespace tessera::cpu
