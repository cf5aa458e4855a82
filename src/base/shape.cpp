#include "tessera/base/shape.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {  // i counts from the innermost axis
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    require(x == y || x == 1 || y == 1, ErrorCode::invalid_argument,
            "shapes {} and {} do not broadcast: axis -{} is {} against {}", to_string(a), to_string(b), i + 1,
            x, y);
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace tessera
