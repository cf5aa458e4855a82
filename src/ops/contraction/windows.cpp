#include "ops/contraction/windows.h"

#include <algorithm>
#include <limits>

#include "tessera/base/error.h"

namespace tessera::ops {
namespace {

// Kernels count in 32 bits.
constexpr int64_t kMaximumWindowNumber = std::numeric_limits<int32_t>::max();

void check_list(const char* name, const std::vector<int64_t>& values, int64_t spatial, int64_t least) {
  require(static_cast<int64_t>(values.size()) == spatial, ErrorCode::invalid_graph,
          "{} must have one number for each of the {} spatial axes, got {}", name, spatial, values.size());
  for (int64_t value : values) {
    require(value >= least && value <= kMaximumWindowNumber, ErrorCode::invalid_graph,
            "{} must be at least {} and at most {}, got {}", name, least, kMaximumWindowNumber, value);
  }
}

}  // namespace

void check_windows(const WindowOptions& options, int64_t spatial) {
  require(spatial >= 1 && spatial <= 3, ErrorCode::invalid_graph,
          "images must be [N, spatial..., C] with one to three spatial axes, got {}", spatial);
  check_list("window", options.window, spatial, 1);
  check_list("strides", options.strides, spatial, 1);
  check_list("padding_low", options.padding_low, spatial, 0);
  check_list("padding_high", options.padding_high, spatial, 0);
  check_list("dilations", options.dilations, spatial, 1);
}

int64_t window_reach(const WindowOptions& options, size_t axis) {
  return (Dimension(options.dilations[axis]) * (options.window[axis] - 1) + 1).value();
}

SymbolicShape window_counts(const SymbolicShape& image, const WindowOptions& options) {
  SymbolicShape counts;
  for (size_t axis = 0; axis < image.size(); ++axis) {
    const int64_t reach = window_reach(options, axis);
    const Dimension padded = image[axis] + options.padding_low[axis] + options.padding_high[axis];
    require(
        !padded.is_static() || padded.value() >= reach, ErrorCode::invalid_graph,
        "a window that reaches over {} elements does not fit into the padded extent {} of spatial axis {}",
        reach, padded.to_string(), axis);
    counts.push_back((padded - reach).floor_divide(options.strides[axis]) + 1);
  }
  return counts;
}

SymbolicShape spatial_shape(const SymbolicShape& x) {
  return {x.begin() + 1, x.end() - 1};
}

WindowGeometry::WindowGeometry(const Shape& image_shape, const Shape& result_shape,
                               const WindowOptions& options) {
  const auto triple = [](const std::vector<int64_t>& values, int64_t fallback) {
    Triple result{fallback, fallback, fallback};
    std::copy(values.begin(), values.end(), result.end() - static_cast<std::ptrdiff_t>(values.size()));
    return result;
  };
  image = triple({image_shape.begin() + 1, image_shape.end() - 1}, 1);
  result = triple({result_shape.begin() + 1, result_shape.end() - 1}, 1);
  window = triple(options.window, 1);
  strides = triple(options.strides, 1);
  padding = triple(options.padding_low, 0);
  dilations = triple(options.dilations, 1);
}

}  // namespace tessera::ops
