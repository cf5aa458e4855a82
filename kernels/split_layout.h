// Tiles of split_convolution.cuh, and its shared memory.
#pragma once

#include "layout.h"

namespace tessera {

constexpr LayoutSize kSplitTilePixels = 64;
constexpr LayoutSize kSplitTileOutputs = 32;
// One row of an operand in a stage.
constexpr LayoutSize kSplitRowBytes = 128;

constexpr LayoutSize split_stage_bytes() {
  return (kSplitTilePixels + kSplitTileOutputs) * kSplitRowBytes;
}
// A row of a block's sums. Padded, so that what a warp writes at a time lies in different banks.
constexpr LayoutSize split_sum_pitch() {
  return kSplitTileOutputs + 8;
}
// The sums take the stages' place.
constexpr LayoutSize split_bytes(LayoutSize stages) {
  const LayoutSize sums = kSplitTilePixels * split_sum_pitch() * static_cast<LayoutSize>(sizeof(float));
  const LayoutSize operands = stages * split_stage_bytes();
  return sums > operands ? sums : operands;
}

}  // namespace tessera
