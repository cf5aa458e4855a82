#include "device/cpu/convolution/window_patches.h"

#include <algorithm>
#include <vector>

namespace tessera::cpu {
namespace {

// By constants: a call for each few floats, as std::copy_n of any count is, takes longer than they do.
void copy(const float* from, float* to, int64_t count) {
  constexpr int64_t kPiece = 4;
  int64_t i = 0;
  for (; i + kPiece <= count; i += kPiece) std::copy_n(from + i, kPiece, to + i);
  if ((count & 2) != 0) {
    std::copy_n(from + i, 2, to + i);
    i += 2;
  }
  if ((count & 1) != 0) to[i] = from[i];
}

}  // namespace

void WindowPatches::gather(const float* x, Range pixels, float* rows) const {
  const WindowAxis& axis = lines_.axis();
  const int64_t channels = lines_.channels();
  const int64_t line_depth = axis.window * channels;
  std::vector<WindowLine> lines(static_cast<size_t>(lines_.in_window()));
  for (int64_t pixel = pixels.begin; pixel < pixels.end;) {
    const int64_t result = pixel / axis.destination;
    const int64_t end = std::min(pixels.end, (result + 1) * axis.destination);
    const int64_t found = lines_.find(x, result, lines.data());
    const bool whole = found == lines_.in_window();
    for (; pixel < end; ++pixel, rows += depth()) {
      const int64_t place = pixel - result * axis.destination;
      const int64_t first = axis.position(place, 0);
      const bool inside = axis.holds(first) && axis.holds(axis.position(place, axis.window - 1));
      if (!whole || !inside) std::fill_n(rows, depth(), 0.0F);
      for (int64_t i = 0; i < found; ++i) {
        const WindowLine& line = lines[static_cast<size_t>(i)];
        float* to = rows + line.window * line_depth;
        if (inside && axis.dilation == 1) {
          copy(line.x + first * channels, to, line_depth);
          continue;
        }
        for (int64_t tap = 0; tap < axis.window; ++tap) {
          const int64_t position = axis.position(place, tap);
          if (axis.holds(position)) copy(line.x + position * channels, to + tap * channels, channels);
        }
      }
    }
  }
}

}  // namespace tessera::cpu
