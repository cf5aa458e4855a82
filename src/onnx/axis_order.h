// Where the format and graphs have their channels.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::onnx {

// permutation[i] is the axis that becomes axis i, as in the operator transpose: from channels after space
// (graphs) to channels before it (the format), and back.
std::vector<int64_t> channels_first_permutation(int64_t rank);
std::vector<int64_t> channels_last_permutation(int64_t rank);
// The place in a tensor with its channels first of an axis of one with its channels last.
int64_t channels_first_axis(int64_t axis, int64_t rank);

}  // namespace tessera::onnx
