#include "device/cpu/convolution/window_rows.h"

#include <algorithm>

namespace tessera::cpu {

WindowAxes window_axes(const ConvolutionProblem& problem) {
  WindowAxes axes;
  const size_t count = problem.strides.size();
  const size_t first = axes.size() - count;
  const size_t first_of_weight = problem.weight.size() - count;  // groups may stand before
  for (size_t i = 0; i < count; ++i) {
    axes[first + i] = {.source = problem.source[i + 2],
                       .destination = problem.destination[i + 2],
                       .window = problem.weight[first_of_weight + i],
                       .stride = problem.strides[i],
                       .dilation = problem.dilations[i] + 1,
                       .padding = problem.padding_low[i]};
  }
  return axes;
}

WindowRows::WindowRows(const ConvolutionProblem& problem)
    : axes_(window_axes(problem)), channels_(problem.input_channels()) {}

int64_t WindowRows::taps() const {
  return axes_[0].window * axes_[1].window * axes_[2].window;
}

template <typename T>
void WindowRows::find(const T* x, int64_t tap, Range pixels, const T** rows) const {
  std::array<int64_t, 3> place{};  // in the result
  std::array<int64_t, 3> shift{};  // from a place times the stride to the pixel
  int64_t image = pixels.begin;
  for (size_t i = axes_.size(); i-- > 0;) {
    const WindowAxis& axis = axes_[i];
    place[i] = image % axis.destination;
    image /= axis.destination;
    shift[i] = tap % axis.window * axis.dilation - axis.padding;
    tap /= axis.window;
  }
  const WindowAxis& line = axes_[2];
  for (int64_t left = pixels.size(); left > 0;) {
    int64_t source = image;
    bool inside = true;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t position = place[i] * axes_[i].stride + shift[i];
      inside = inside && position >= 0 && position < axes_[i].source;
      source = source * axes_[i].source + position;
    }
    const int64_t count = std::min(left, line.destination - place[2]);
    int64_t position = place[2] * line.stride + shift[2];
    for (int64_t i = 0; i < count; ++i, position += line.stride) {
      const bool read = inside && position >= 0 && position < line.source;
      *rows++ = read ? x + (source * line.source + position) * channels_ : nullptr;
    }
    left -= count;
    place[2] = 0;
    if (++place[1] < axes_[1].destination) continue;
    place[1] = 0;
    if (++place[0] < axes_[0].destination) continue;
    place[0] = 0;
    ++image;
  }
}

template void WindowRows::find(const float*, int64_t, Range, const float**) const;
template void WindowRows::find(const int8_t*, int64_t, Range, const int8_t**) const;
template void WindowRows::find(const uint8_t*, int64_t, Range, const uint8_t**) const;

}  // namespace tessera::cpu
