// Concrete tensor shapes: the extent of every axis, outermost first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

using Shape = std::vector<int64_t>;

// The most bytes that a tensor may take, and so the largest extent: what a process can address. Sums and
// products of a few such numbers with small ones fit into 64 bits.
inline constexpr int64_t kMaximumTensorBytes = int64_t{1} << 47;

// Product of the extents; 1 for the scalar shape {}. Throws Error(invalid_argument) naming the shape when 64
// bits cannot count them.
int64_t element_count(const Shape& shape);

// Bytes of a tensor of such elements. Throws Error(invalid_argument) on a negative extent and
// Error(out_of_memory) on more than kMaximumTensorBytes, both naming the shape. An empty axis counts as one
// there, so that the strides fit too.
int64_t tensor_bytes(const Shape& shape, size_t element_bytes);

// Row-major strides, in elements. Throws Error(invalid_argument) where 64 bits cannot hold one.
std::vector<int64_t> row_major_strides(const Shape& shape);

// "[2, 3]"; "[]" for a scalar.
std::string to_string(const Shape& shape);

// Extent of NumPy broadcasting of the two. Throws Error(invalid_argument) naming both when they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace tessera
