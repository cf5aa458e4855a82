// x of rotary_embedding as its heads, row by row, and which angles each has.
#pragma once

#include <cstdint>

#include "tessera/graph/graph.h"

namespace tessera::backend {

// Row r has the angles number r / batch_rows * tokens + r / token_rows % tokens.
struct RotaryRows {
  int64_t rows = 0;        // of all of x
  int64_t half = 0;        // pairs of a row
  int64_t tokens = 0;      // angles that follow one another
  int64_t token_rows = 0;  // rows of a token, side by side
  int64_t batch_rows = 0;  // rows of what has angles of its own

  int64_t angles_of(int64_t row) const { return row / batch_rows * tokens + row / token_rows % tokens; }
};

RotaryRows rotary_rows(const Node& node);

}  // namespace tessera::backend
