// Shared memory of resident.cuh beside the slots.
#pragma once

#include "layout.h"

namespace tessera {

// add_over_team: rows of sums, one for each warp and later for each group of threads that has four of the
// columns.
constexpr LayoutSize resident_scratch_rows(LayoutSize threads, LayoutSize columns) {
  const LayoutSize warps = threads / 32, groups = threads / (columns / 4);
  return warps > groups ? warps : groups;
}
// Floats of these rows and of the totals.
constexpr LayoutSize resident_sums(LayoutSize threads, LayoutSize columns) {
  return (resident_scratch_rows(threads, columns) + 1) * columns;
}

}  // namespace tessera
