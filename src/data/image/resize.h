// Resizing by weighted sums along each axis, as Pillow does it (Resample.c): the weights are those of a
// filter whose support grows with the scale when it shrinks, cut at the borders and normalized, in whole
// numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/data/image.h"

namespace tessera::data {

// Pixels [height, width, channels], of which each row begins `stride` values after the one before.
struct PixelView {
  const uint8_t* data = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 3;
  int64_t stride = 0;
};

// A part of an image whose borders need not lie between pixels. What lies outside is not looked at.
struct Box {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
};

// Which pixels along an axis make each of the result's, and how much each of them counts.
struct AxisWeights {
  std::vector<int64_t> first = {};   // [count]
  std::vector<int64_t> taps = {};    // [count], at most `stride`
  std::vector<double> weights = {};  // [count, stride], which add up to 1 for each
  int64_t stride = 0;
  int64_t count = 0;
};
// Of `extent` pixels from `begin` on, of which there are `available`, in `count` pixels. Mirrored: from the
// end to the beginning.
AxisWeights axis_weights(int64_t available, double begin, double extent, int64_t count, ResizeFilter filter,
                         bool mirrored);

// Memory that is reused from one image to the next.
struct ResizeScratch {
  std::vector<uint8_t> bytes = {};
  std::vector<int32_t> wide = {};
  std::vector<int16_t> row = {};
};

// Writes [height, width, source.channels].
void resize(const PixelView& source, const Box& box, ResizeFilter filter, bool mirrored, int64_t height,
            int64_t width, std::span<uint8_t> target, ResizeScratch& scratch);

// The same by 16-bit products, for three channels, filters without negative weights, and few taps:
// intermediate sums keep six bits after the point.
bool can_resize_narrow(const PixelView& source, ResizeFilter filter, const AxisWeights& rows,
                       const AxisWeights& columns);
void resize_narrow(const PixelView& source, const AxisWeights& rows, const AxisWeights& columns,
                   std::span<uint8_t> target, ResizeScratch& scratch);

}  // namespace tessera::data
