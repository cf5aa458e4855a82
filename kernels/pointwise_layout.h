// Shared memory of the kernels for pointwise convolutions and their gradients, in elements. Each keeps the
// operands of some items, of a few pixels each, side by side; rows that are not dealt to the banks are padded
// by an access.
#pragma once

#include "layout.h"

namespace tessera {

constexpr LayoutSize kPointwiseAccessBytes = 16;

// pointwise_convolution.cuh
struct PointwiseConvolutionLayout {
  LayoutSize element_bytes, item, inputs, slice, norms;
  bool prologue_residual, residual;

  constexpr LayoutSize operands() const { return norms > 0 ? norms + (prologue_residual ? 1 : 0) : 1; }
  constexpr LayoutSize pitch() const { return inputs + kPointwiseAccessBytes / element_bytes; }
  constexpr LayoutSize operand_elements() const { return item * pitch(); }
  constexpr LayoutSize stage_elements() const {
    return operands() * operand_elements() + (residual ? item * slice : 0);
  }
};

// summed_gradients.cuh: what is as wide as the slice is dy's residual, x, and the input of each
// normalization.
struct SummedGradientsLayout {
  LayoutSize element_bytes, item, slice, narrow, norms;

  constexpr LayoutSize operands() const { return 2 + norms; }
  // In 32 bits, which are transposed number by number, rows are padded.
  constexpr bool padded() const { return element_bytes == 4; }
  constexpr LayoutSize padding() const { return padded() ? kPointwiseAccessBytes / element_bytes : 0; }
  constexpr LayoutSize wide_elements() const { return item * (slice + padding()); }
  constexpr LayoutSize narrow_elements() const { return item * (narrow + padding()); }
  constexpr LayoutSize stage_elements() const { return operands() * wide_elements() + narrow_elements(); }
  // After the stages: two numbers for each channel of each normalization, to recompute the mask.
  constexpr LayoutSize numbers() const { return 2 * norms * slice; }
};

// warpgroup_summed_gradients.cuh
struct WarpgroupSummedGradientsLayout {
  LayoutSize item, slice, narrow, norms;
  bool recompute;  // the mask, and thus nothing reads x as such

  constexpr LayoutSize first_x() const { return recompute ? 1 : 2; }
  constexpr LayoutSize operands() const { return first_x() + norms; }
  constexpr LayoutSize wide_elements() const { return item * slice; }
  constexpr LayoutSize stage_elements() const { return operands() * wide_elements() + item * narrow; }
};

// normalized_gradients.cuh: dy and y as wide as the convolution's outputs, and its input; after the stages
// two gradients, and two numbers for each channel of the input.
struct NormalizedGradientsLayout {
  LayoutSize element_bytes, item, wide, narrow;

  constexpr LayoutSize padding() const { return kPointwiseAccessBytes / element_bytes; }
  constexpr LayoutSize stage_elements() const { return item * (2 * wide + narrow + padding()); }
  constexpr LayoutSize gradient_elements() const { return item * (wide + padding()); }
  constexpr LayoutSize numbers() const { return 2 * narrow; }
};

}  // namespace tessera
