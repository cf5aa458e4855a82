// What ranks call together, as they tell each other, so that those that do not do the same are told so.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tessera/compile/communicator.h"

namespace tessera::distribute {

// What a rank is doing.
struct Call {
  uint32_t function = 0;
  uint32_t type = 0;
  uint32_t detail = 0;  // reduction or root
  uint32_t number = 0;  // how many calls were before it
  int64_t count = 0;    // elements or bytes
  bool operator==(const Call&) const = default;
};

// Those of each function. Throw Error(invalid_argument) where the type has no such reduction, or the group no
// such root.
Call all_reduce_call(std::span<const ReducedPart> parts, DataType type, Reduction reduction);
Call reduce_scatter_call(int64_t elements, DataType type, Reduction reduction);
Call all_gather_call(int64_t bytes);
Call broadcast_call(int64_t bytes, int64_t root, int64_t ranks);
Call barrier_call();

// "" where the two ranks do the same.
std::string difference(int64_t rank, const Call& call, int64_t other_rank, const Call& other);

// Throws Error(invalid_argument) on a member that is none of so many ranks, or stands there twice.
void check_members(std::span<const int64_t> members, int64_t ranks);

}  // namespace tessera::distribute
