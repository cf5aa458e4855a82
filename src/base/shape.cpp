#include "tessera/base/shape.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

[[noreturn]] void fail_uncountable(const Shape& shape) {
  fail(ErrorCode::invalid_argument, "shape {} holds more elements than 64 bits can count", to_string(shape));
}

}  // namespace

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  bool overflows = false;
  for (int64_t extent : shape) {
    if (extent == 0) return 0;
    overflows |= __builtin_mul_overflow(count, extent, &count);
  }
  if (overflows) fail_uncountable(shape);
  return count;
}

int64_t tensor_bytes(const Shape& shape, size_t element_bytes) {
  auto bytes = static_cast<int64_t>(element_bytes);
  bool is_empty = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      fail(ErrorCode::invalid_argument, "tensor shape {} has a negative extent", to_string(shape));
    is_empty |= extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes) || bytes > kMaximumTensorBytes)
      fail(ErrorCode::out_of_memory,
           "a tensor of shape {} and {}-byte elements takes more than the {} that a process can address",
           to_string(shape), element_bytes, format_bytes(static_cast<double>(kMaximumTensorBytes)));
  }
  return is_empty ? 0 : bytes;
}

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    if (axis > 0 && __builtin_mul_overflow(stride, shape[axis], &stride)) fail_uncountable(shape);
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
