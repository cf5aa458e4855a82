// Which pixels of a channels-last image a convolution's window reads, one tap at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/loops/range.h"

namespace tessera::cpu {

struct WindowAxis {
  int64_t source = 1;
  int64_t destination = 1;
  int64_t window = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t padding = 0;

  // In the source, under an element of the window at a place of the result.
  int64_t position(int64_t place, int64_t element) const {
    return place * stride + element * dilation - padding;
  }
  bool holds(int64_t position) const { return position >= 0 && position < source; }
};

// The last is the innermost; the first may be missing, which is one of 1.
using WindowAxes = std::array<WindowAxis, 3>;
WindowAxes window_axes(const ConvolutionProblem& problem);

class WindowRows {
 public:
  explicit WindowRows(const ConvolutionProblem& problem);

  int64_t taps() const;
  // rows[i]: the channels of x under the tap for pixel `pixels.begin + i` of the result, counted through all
  // images; null in the padding. Of float, int8_t and uint8_t.
  template <typename T>
  void find(const T* x, int64_t tap, Range pixels, const T** rows) const;

 private:
  WindowAxes axes_;
  int64_t channels_ = 0;
};

}  // namespace tessera::cpu
