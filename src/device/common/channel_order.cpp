#include "tessera/device/common/channel_order.h"

#include <cstddef>

namespace tessera::backend {

std::vector<int64_t> channels_second(const std::vector<int64_t>& shape) {
  std::vector<int64_t> dims{shape.front(), shape.back()};
  dims.insert(dims.end(), shape.begin() + 1, shape.end() - 1);
  return dims;
}

std::vector<int64_t> channels_last_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  strides[1] = 1;
  int64_t stride = dims[1];
  for (size_t axis = dims.size(); axis-- > 2;) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  strides[0] = stride;
  return strides;
}

}  // namespace tessera::backend
