#include "onnx/axis_order.h"

#include <cstddef>

namespace tessera::onnx {

std::vector<int64_t> channels_first_permutation(int64_t rank) {
  std::vector<int64_t> permutation{0, rank - 1};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) permutation.push_back(axis);
  return permutation;
}

std::vector<int64_t> channels_last_permutation(int64_t rank) {
  std::vector<int64_t> permutation{0};
  for (int64_t axis = 2; axis < rank; ++axis) permutation.push_back(axis);
  permutation.push_back(1);
  return permutation;
}

int64_t channels_first_axis(int64_t axis, int64_t rank) {
  return channels_last_permutation(rank)[static_cast<size_t>(axis)];
}

}  // namespace tessera::onnx
