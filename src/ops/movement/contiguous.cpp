#include "ops/movement/contiguous.h"

namespace tessera::ops {

std::optional<int64_t> contiguous_part(DataType type, const Shape& whole, const std::vector<int64_t>& starts,
                                       const Shape& counts) {
  if (element_count(counts) == 0) return 0;
  const std::vector<int64_t> strides = row_major_strides(whole);
  int64_t first = 0;
  bool is_single = true;  // one index along each axis so far
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    if (!is_single && counts[axis] != whole[axis]) return std::nullopt;
    is_single = is_single && counts[axis] == 1;
    first += starts[axis] * strides[axis];
  }
  const int64_t begin = first * bits_of(type);
  const int64_t bits = element_count(counts) * bits_of(type);
  return begin % 8 == 0 && bits % 8 == 0 ? std::optional<int64_t>(begin / 8) : std::nullopt;
}

std::vector<int64_t> contiguous_parts(DataType type, const Shape& whole, size_t axis,
                                      const std::vector<int64_t>& extents) {
  std::vector<int64_t> offsets;
  std::vector<int64_t> starts(whole.size(), 0);
  Shape counts = whole;
  for (int64_t extent : extents) {
    counts[axis] = extent;
    const std::optional<int64_t> offset = contiguous_part(type, whole, starts, counts);
    if (!offset.has_value()) return {};
    offsets.push_back(*offset);
    starts[axis] += extent;
  }
  return offsets;
}

}  // namespace tessera::ops
