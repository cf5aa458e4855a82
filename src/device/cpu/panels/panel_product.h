// The innermost step of a matrix product: fp32, operands in the caches.
#pragma once

#include <cstdint>

#include "device/cpu/panels/loop_epilogue.h"

namespace tessera::cpu {

// c[rows, width] = a[rows, depth] b[depth, width], or added to c. Element (i, t) of a is at
// a[i * a_row + t * a_depth]. The width is a multiple of vector_width(), at most panel_width().
struct PanelProduct {
  const float* a = nullptr;
  int64_t a_row = 0;
  int64_t a_depth = 0;
  const float* b = nullptr;
  int64_t b_row = 0;
  float* c = nullptr;
  int64_t c_row = 0;
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t width = 0;
  bool accumulate = false;
  bool stream =
      false;  // write past the caches; rows of c are aligned to vectors then, and no activation follows
  // Of the columns, and a residual whose rows lie as those of c do; null for none.
  const LoopEpilogue* epilogue = nullptr;
  // What is multiplied after this, and fetched to the second-level cache meanwhile.
  const float* following = nullptr;
  int64_t following_elements = 0;
};
void multiply_panel(const PanelProduct& product);

// Rows that are multiplied at once: a multiple of it wastes nothing.
inline constexpr int64_t kPanelRows = 6;

// In elements, on this processor: a vector, and the columns that are multiplied at once.
int64_t vector_width();
int64_t panel_width();

}  // namespace tessera::cpu
