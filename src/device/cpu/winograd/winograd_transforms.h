// The transforms of Winograd's minimal filtering with tiles of 6 x 6 for windows of 3 x 3 (Lavin and Gray
// 2016, arXiv:1509.09308): F(4x4, 3x3) for the convolution and its data gradient, F(3x3, 4x4) for the weight
// gradient. A tile takes 36 products for each pair of channels instead of 144; its interpolation points are
// 0, 1, -1, 2, -2 and infinity. All values are fp32, images channels-last.
#pragma once

#include <cstdint>

#include "device/cpu/loops/range.h"
#include "device/cpu/panels/loop_epilogue.h"

namespace tessera::cpu {

inline constexpr int64_t kWinogradTile = 6;
inline constexpr int64_t kWinogradPlaces = kWinogradTile * kWinogradTile;
inline constexpr int64_t kWinogradSquare = 4;  // edge of the outputs that one tile covers

// How squares lie over images: square (a, b) begins at pixel (4a - before[0], 4b - before[1]); pixels outside
// read as zero and are not written. Squares are counted through all images, row by row.
struct WinogradImages {
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 1;
  int64_t before[2] = {0, 0};
  int64_t squares_high = 1;
  int64_t squares_wide = 1;
};

// One matrix for each of the 36 places of a tile; strides in elements.
template <typename Element>
struct WinogradMatrices {
  Element* data = nullptr;
  int64_t matrix_stride = 0;
  int64_t row_stride = 0;
};

// Each square of 6 x 6 pixels becomes one row of the given channels in each matrix.
void winograd_input(const WinogradImages& images, const float* x, Range squares, Range channels,
                    const WinogradMatrices<float>& out);

// Each square of 4 x 4 pixels of the result's gradient, the filter of F(3x3, 4x4), becomes one row of the
// given channels.
void winograd_gradient(const WinogradImages& images, const float* dy, Range squares, Range channels,
                       const WinogradMatrices<float>& out);

// Rows back to squares of 4 x 4 pixels of the result; the matrices' first column is channels.begin.
void winograd_output(const WinogradImages& images, const WinogradMatrices<const float>& in, Range squares,
                     Range channels, const LoopEpilogue& epilogue, float* y);

// A filter as [3, 3, depth, columns]; columns lie side by side.
struct WinogradFilter {
  const float* data = nullptr;
  int64_t tap_strides[2] = {0, 0};
  int64_t depth_stride = 0;
  int64_t columns = 0;
};

// The 36 transformed matrices [depth, width] one after the other, zero beyond the last column.
void winograd_filter(const WinogradFilter& filter, int64_t depth, int64_t width, float* out);

// The sum of `parts` sets of matrices [outputs, channels] that lie part_stride apart, rows `outputs` of them,
// transposed into weight[outputs, 3, 3, channels].
void winograd_weight(const WinogradMatrices<const float>& sums, int64_t parts, int64_t part_stride,
                     Range outputs, int64_t channels, float* weight);

}  // namespace tessera::cpu
