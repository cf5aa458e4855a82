// What moves between strided views have in common with other kernels that only move.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/data_type.h"

namespace tessera::cuda {

// Movement knows no types, only sizes: the name of a type of that size in kernels/types.cuh. Refuses what has
// none (device/common/refusal.h).
std::string unit_type(DataType type);
// The same of 1, 2, 4, 8 or 16 bytes.
std::string unit_of_bytes(int64_t bytes);
inline constexpr int64_t kWidestAccess = 16;  // bytes

// The type of places up to the farthest: arithmetic of 32 bits, a third of that of 64, where they fit.
std::string index_up_to(int64_t farthest);

}  // namespace tessera::cuda
