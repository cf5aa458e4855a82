// Consecutive places, such as squares, pixels or channels, cut into blocks that a thread works on at a time.
// A block of many reads the other operand rarely, one of few stays in the second-level cache.
#pragma once

#include <algorithm>

#include "tessera/base/rounding.h"

#include "device/cpu/loops/range.h"

namespace tessera::cpu {

struct Blocks {
  int64_t total = 0;
  int64_t size = 0;   // of a block; the last may be smaller
  int64_t parts = 1;  // threads; each has something to do
  int64_t count() const { return quotient_rounded_up(total, size); }
  Range block(int64_t index) const { return {index * size, std::min((index + 1) * size, total)}; }
};
// Evenly among the threads, multiples of kPanelRows unless that would be much less even.
Blocks cut_into_blocks(int64_t total, int64_t largest);
// Into as few blocks as `largest` allows, all of one size, a multiple of `multiple`.
Blocks cut_evenly(int64_t total, int64_t largest, int64_t multiple);
// Of exactly this size.
Blocks cut_into_panels(int64_t total, int64_t size);

}  // namespace tessera::cpu
