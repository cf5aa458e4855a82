// Concrete tensor shapes: the extent of every axis, outermost first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

using Shape = std::vector<int64_t>;

// Product of the extents; 1 for the scalar shape {}.
int64_t element_count(const Shape& shape);

// Row-major strides, in elements.
std::vector<int64_t> row_major_strides(const Shape& shape);

// "[2, 3]"; "[]" for a scalar.
std::string to_string(const Shape& shape);

// Extent of NumPy broadcasting of the two. Throws Error(invalid_argument) naming both when they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace tessera
