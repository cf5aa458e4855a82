// The elements that a convolution's window reads for each pixel of its result, as rows of a matrix. fp32.
#pragma once

#include "device/cpu/convolution/window_lines.h"

namespace tessera::cpu {

class WindowPatches {
 public:
  explicit WindowPatches(const ConvolutionProblem& problem) : lines_(problem) {}

  // Of a row: [elements of the window, channels].
  int64_t depth() const { return lines_.in_window() * lines_.axis().window * lines_.channels(); }
  // Of the pixels, counted through all images, to rows that begin at `rows`; zero in the padding.
  void gather(const float* x, Range pixels, float* rows) const;

 private:
  WindowLines lines_;
};

}  // namespace tessera::cpu
