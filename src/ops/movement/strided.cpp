#include "ops/movement/strided.h"

#include <cstring>

namespace tessera::ops {

std::vector<int64_t> broadcast_strides(const Shape& own, const Shape& target) {
  const std::vector<int64_t> strides = row_major_strides(own);
  std::vector<int64_t> result(target.size(), 0);
  const size_t extra = target.size() - own.size();
  for (size_t axis = 0; axis < own.size(); ++axis) {
    result[extra + axis] = own[axis] == 1 ? 0 : strides[axis];
  }
  return result;
}

void copy_elements(const Tensor& source, const StridedView& from, Tensor& target, const StridedView& to,
                   const Shape& shape) {
  const size_t size = size_of(target.data_type());
  const auto* input = static_cast<const std::byte*>(source.raw());
  auto* output = static_cast<std::byte*>(target.raw());
  walk(shape, {from.strides, to.strides}, [&](const std::vector<int64_t>& offsets) {
    std::memcpy(output + static_cast<size_t>(to.offset + offsets[1]) * size,
                input + static_cast<size_t>(from.offset + offsets[0]) * size, size);
  });
}

}  // namespace tessera::ops
