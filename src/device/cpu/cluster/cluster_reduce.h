// Accumulating tiles into the results of a cluster's ending reduction. Floating-point registers accumulate
// into doubles, in short runs of their own type; integers into int64, exactly.
#pragma once

#include <cstdint>

#include "tessera/graph/operator.h"

#include "device/cpu/cluster/cluster_loops.h"

namespace tessera::cpu {

// What accumulators are made of, 8 bytes each.
inline constexpr int64_t kAccumulatorBytes = 8;

struct ReductionLoops {
  // accumulators[0] takes in n elements.
  void (*row)(const void* tile, int64_t n, void* accumulators);
  // accumulators[j] takes in tile[r * columns + j] for every r.
  void (*columns)(const void* tile, int64_t rows, int64_t columns, void* accumulators);
  // a[i] takes in b[i].
  void (*combine)(void* a, const void* b, int64_t n);
  void (*clear)(void* accumulators, int64_t n);
  // Writes n results of the data type; `count` is the number of elements that each is made of.
  void (*finish)(const void* accumulators, int64_t n, int64_t count, void* out);
};

ReductionLoops find_reduction(ReductionKind kind, DataType type);

}  // namespace tessera::cpu
