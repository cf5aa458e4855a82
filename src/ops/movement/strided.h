// Walks over strided views, for reference loops that move or broadcast elements.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/tensor.h"

namespace tessera::ops {

// Row-major strides of `own` as seen from the shape it is broadcast to: 0 along the repeated axes.
std::vector<int64_t> broadcast_strides(const Shape& own, const Shape& target);

// Visits every index of `shape` in row-major order: visit(offsets), with offsets[v] = sum of index *
// strides[v].
template <typename Visit>
void walk(const Shape& shape, const std::vector<std::vector<int64_t>>& strides, Visit&& visit) {
  std::vector<int64_t> index(shape.size(), 0);
  std::vector<int64_t> offsets(strides.size(), 0);
  for (int64_t left = element_count(shape); left > 0; --left) {
    visit(offsets);
    for (size_t axis = shape.size(); axis-- > 0;) {
      const bool wraps = ++index[axis] == shape[axis];
      const int64_t steps = wraps ? 1 - shape[axis] : 1;
      for (size_t view = 0; view < strides.size(); ++view) offsets[view] += steps * strides[view][axis];
      if (!wraps) break;
      index[axis] = 0;
    }
  }
}

// A view of a tensor's elements: the first one, and the step along each axis of the walk.
struct StridedView {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

// target[to] = source[from] for every index of `shape`. Moves bits, so that every type is exact.
void copy_elements(const Tensor& source, const StridedView& from, Tensor& target, const StridedView& to,
                   const Shape& shape);

}  // namespace tessera::ops
