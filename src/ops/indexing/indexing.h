// What the operators with data-dependent addresses share.
#pragma once

#include <vector>

#include "tessera/graph/operator.h"

namespace tessera::ops {

// The indices as numbers in [0, extent). Throws Error(invalid_argument) that names the node, the first index
// outside, its place and the bound.
std::vector<int64_t> read_indices(const Tensor& indices, int64_t extent, const Node& node);

}  // namespace tessera::ops
