// Windows that slide over images: what convolution and pooling have in common.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tessera/graph/operator.h"

namespace tessera::ops {

// One number per spatial axis each.
struct WindowOptions {
  std::vector<int64_t> window;
  std::vector<int64_t> strides;
  std::vector<int64_t> padding_low;
  std::vector<int64_t> padding_high;
  std::vector<int64_t> dilations;
};

// Throws Error(invalid_graph) unless there are one to three spatial axes, each list has one number for each,
// window, strides and dilations are at least 1 and padding at least 0, and none is beyond 32 bits.
void check_windows(const WindowOptions& options, int64_t spatial);

// Over how many elements a window reaches along a spatial axis: dilation * (window - 1) + 1.
int64_t window_reach(const WindowOptions& options, size_t axis);

// How many windows fit: floor((image + padding - dilation * (window - 1) - 1) / stride) + 1 per axis. Throws
// Error(invalid_graph) where not even one does.
SymbolicShape window_counts(const SymbolicShape& image, const WindowOptions& options);

// x without its batch and channel axes.
SymbolicShape spatial_shape(const SymbolicShape& x);

// Three spatial axes; leading ones that are missing have extent 1.
struct WindowGeometry {
  using Triple = std::array<int64_t, 3>;
  Triple image, window, result, strides, padding, dilations;

  WindowGeometry(const Shape& image_shape, const Shape& result_shape, const WindowOptions& options);
  int64_t pixels() const { return image[0] * image[1] * image[2]; }
  int64_t results() const { return result[0] * result[1] * result[2]; }
  int64_t taps() const { return window[0] * window[1] * window[2]; }
};

// visit(result, tap, pixel), row-major indices, for every tap of every window that lies inside the image.
template <typename Visit>
void walk_windows(const WindowGeometry& g, Visit&& visit) {
  const auto inside = [&](size_t axis, int64_t result, int64_t tap, int64_t& pixel) {
    pixel = result * g.strides[axis] - g.padding[axis] + tap * g.dilations[axis];
    return pixel >= 0 && pixel < g.image[axis];
  };
  std::array<int64_t, 3> pixel{};
  int64_t result = 0;
  for (int64_t d = 0; d < g.result[0]; ++d) {
    for (int64_t h = 0; h < g.result[1]; ++h) {
      for (int64_t w = 0; w < g.result[2]; ++w, ++result) {
        for (int64_t tap = 0; tap < g.taps(); ++tap) {
          if (inside(0, d, tap / (g.window[1] * g.window[2]), pixel[0]) &&
              inside(1, h, tap / g.window[2] % g.window[1], pixel[1]) &&
              inside(2, w, tap % g.window[2], pixel[2])) {
            visit(result, tap, (pixel[0] * g.image[1] + pixel[1]) * g.image[2] + pixel[2]);
          }
        }
      }
    }
  }
}

}  // namespace tessera::ops
