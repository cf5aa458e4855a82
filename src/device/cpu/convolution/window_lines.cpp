#include "device/cpu/convolution/window_lines.h"

namespace tessera::cpu {

WindowLines::WindowLines(const ConvolutionProblem& problem)
    : axes_(window_axes(problem)), images_(problem.source[0]), channels_(problem.input_channels()) {}

int64_t WindowLines::in_results() const {
  return images_ * axes_[0].destination * axes_[1].destination;
}

int64_t WindowLines::find(const float* x, int64_t result, WindowLine* lines) const {
  const auto& [outer, inner, line] = axes_;
  const int64_t row = result % inner.destination;
  const int64_t plane = result / inner.destination % outer.destination;
  const int64_t image = result / inner.destination / outer.destination;
  int64_t count = 0;
  for (int64_t i = 0; i < outer.window; ++i) {
    const int64_t z = outer.position(plane, i);
    if (!outer.holds(z)) continue;
    for (int64_t j = 0; j < inner.window; ++j) {
      const int64_t y = inner.position(row, j);
      if (!inner.holds(y)) continue;
      const int64_t place = (image * outer.source + z) * inner.source + y;
      lines[count++] = {x + place * line.source * channels_, i * inner.window + j};
    }
  }
  return count;
}

}  // namespace tessera::cpu
