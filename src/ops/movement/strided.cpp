#include "ops/movement/strided.h"

#include "tessera/base/elements.h"

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
  walk(shape, {from.strides, to.strides}, [&](const std::vector<int64_t>& offsets) {
    copy_run(target.data_type(), source.raw(), from.offset + offsets[0], target.raw(), to.offset + offsets[1],
             1);
  });
}

}  // namespace tessera::ops
