// Which lines of a channels-last image a line of a convolution's result reads: pixels side by side along the
// innermost axis.
#pragma once

#include <cstdint>

#include "device/cpu/convolution/window_rows.h"

namespace tessera::cpu {

// A line of the image, and which line of the window lies on it.
struct WindowLine {
  const float* x = nullptr;  // [pixels, channels]
  int64_t window = 0;
};

class WindowLines {
 public:
  explicit WindowLines(const ConvolutionProblem& problem);

  const WindowAxis& axis() const { return axes_[2]; }  // along a line
  int64_t channels() const { return channels_; }       // of the image
  int64_t in_window() const { return axes_[0].window * axes_[1].window; }
  int64_t in_results() const;  // through all images
  // Those under a line of the results that are on the image, at most in_window(), by their places in the
  // window; gives how many.
  int64_t find(const float* x, int64_t result, WindowLine* lines) const;

 private:
  WindowAxes axes_;
  int64_t images_ = 0;
  int64_t channels_ = 0;
};

}  // namespace tessera::cpu
