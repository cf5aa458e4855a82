// Axes as users count them: negative ones from the end.
#pragma once

#include <cstdint>

#include "tessera/base/error.h"

namespace tessera::ops {

// The axis counted from the front. Throws Error(invalid_graph) when it is out of range.
inline int64_t normalized_axis(int64_t axis, int64_t rank) {
  require(axis >= -rank && axis < rank, ErrorCode::invalid_graph, "axis {} is out of range for rank {}", axis,
          rank);
  return axis < 0 ? axis + rank : axis;
}

}  // namespace tessera::ops
