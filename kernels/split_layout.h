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
// Of the stages, which are two or more: the sums take their place.
static_assert(kSplitTilePixels * split_sum_pitch() * static_cast<LayoutSize>(sizeof(float)) <=
              2 * split_stage_bytes());
constexpr LayoutSize split_bytes(LayoutSize stages) {
  return stages * split_stage_bytes();
}

}  // namespace tessera
