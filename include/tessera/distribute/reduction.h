// The arithmetic of reductions over ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/compile/communicator.h"

namespace tessera::distribute {

// target[i] = reduction over all sources of source[i], in the order of the sources, for i in [0, elements).
// 16-bit types are added in fp32; sums of integers wrap around. The target may be none of the sources.
void reduce_elements(std::span<const std::byte* const> sources, std::byte* target, int64_t elements,
                     DataType type, Reduction reduction);

}  // namespace tessera::distribute
