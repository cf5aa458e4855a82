// A line of a convolution whose channels are apart: each result reads its own channel alone. fp32.
#pragma once

#include <cstdint>
#include <span>

#include "device/cpu/convolution/loop_epilogue.h"
#include "device/cpu/convolution/window_lines.h"

namespace tessera::cpu {

struct DepthwiseLine {
  std::span<const WindowLine> lines;  // of the image, that the window reads
  WindowAxis axis;
  int64_t channels = 0;
  const float* weight = nullptr;  // [lines of the window, its elements along the line, channels]
  LoopEpilogue epilogue;          // its residual begins where y does
  bool stream = false;            // write past the caches; whole vectors, and y is aligned to them then
  float* y = nullptr;             // [pixels of the result's line, channels]
};
void depthwise_line(const DepthwiseLine& line);

}  // namespace tessera::cpu
