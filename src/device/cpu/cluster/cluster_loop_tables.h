// What the parts of the loop tables share. See cluster_loops.h.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "device/cpu/cluster/cluster_loops.h"

namespace tessera::cpu {

// One primitive on one kind of register, by the set of its scalar operands; null where there is no loop.
struct PrimitiveLoops {
  Loop by_scalars[8] = {};
};

Loop find_float_loop(std::string_view name, bool wide, unsigned scalars);
Loop find_integer_select_loop(bool wide, unsigned scalars);
Loop find_integer_loop(std::string_view name, bool wide, unsigned scalars);

}  // namespace tessera::cpu
