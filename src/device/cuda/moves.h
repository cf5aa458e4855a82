// What moves between strided views have in common with other kernels that only move.
#pragma once

#include <string>

#include "tessera/base/data_type.h"

namespace tessera::cuda {

// Movement knows no types, only sizes: the name of a type of that size in kernels/types.cuh. Refuses what has
// none (device/common/refusal.h).
std::string unit_type(DataType type);

}  // namespace tessera::cuda
