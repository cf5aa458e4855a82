// The innermost step of a product of bytes: both factors are widened to 16 bits, of which processors multiply
// pairs and add them in 32, exactly.
#pragma once

#include <cstdint>

namespace tessera::cpu {

// sums[rows, panel] of left[rows, row] and packed[row / 2, panel, 2]. A row is an even number of elements, a
// panel a multiple of vector_width(), at most panel_width(), of columns.
struct BytePanel {
  const int16_t* left = nullptr;
  const int16_t* packed = nullptr;
  int32_t* sums = nullptr;
  int64_t rows = 0;
  int64_t row = 0;
  int64_t panel = 0;
};
void multiply_panel(const BytePanel& panel);

}  // namespace tessera::cpu
