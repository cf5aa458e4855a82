// Parts of a tensor that lie in its memory as they would alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/base/tensor.h"

namespace tessera::ops {

// The byte at which the elements from `starts` on, as many as `counts` along each axis, begin in a row-major
// tensor; none where they do not lie one after the other, or begin or end within a byte.
std::optional<int64_t> contiguous_part(DataType type, const Shape& whole, const std::vector<int64_t>& starts,
                                       const Shape& counts);

// The same for parts that follow each other along an axis and fill the tensor; empty where one has none.
std::vector<int64_t> contiguous_parts(DataType type, const Shape& whole, size_t axis,
                                      const std::vector<int64_t>& extents);

}  // namespace tessera::ops
