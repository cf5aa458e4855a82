// Images as libraries name their axes, N, C, spatial..., over memory that stays channels-last.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::backend {

// [N, spatial..., C] -> [N, C, spatial...]
std::vector<int64_t> channels_second(const std::vector<int64_t>& shape);

// Of dense channels-last memory; `dims` and the strides in the order N, C, spatial...
std::vector<int64_t> channels_last_strides(const std::vector<int64_t>& dims);

}  // namespace tessera::backend
