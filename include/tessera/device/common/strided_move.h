// transpose, concat, split, slice and pad as copies between strided views.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::backend {

struct StridedView {
  int64_t offset = 0;            // in elements
  std::vector<int64_t> strides;  // per axis of the copied shape, in elements; 0 repeats
};

// target[to] = source[from] for every index of a shape.
struct StridedMove {
  Shape shape;
  StridedView from;
  StridedView to;
  size_t input = 0;   // of the node
  size_t output = 0;  // of the node
};

// What the node copies. Of pad these are the elements of x; the rest of the result is the padding value.
std::vector<StridedMove> strided_moves(const Node& node);

// Where the value of a pad goes, as moves of that one element. With interior padding that is all of the
// result.
std::vector<StridedMove> padding_moves(const Node& node);

// A tensor as [outer, extent, inner] around one axis, which may count from the end.
struct AxisView {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};
AxisView view_along(const Shape& shape, int64_t axis);

}  // namespace tessera::backend
