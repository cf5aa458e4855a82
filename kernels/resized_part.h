// A part of a decoded image as an image of another size: bilinear, with a support that grows when it shrinks
// and is cut at the part's borders, as src/data/image/resize.h has it. Both axes are summed at once, without
// rounding in between. C++17 without any library, for the kernel and for those who check it on the host.
#pragma once

#include "layout.h"

namespace tessera {

// The rows and columns of the part are reversed first, and then exchanged: all that EXIF and mirroring ask
// for.
struct ResizedPart {
  const unsigned char* pixels;  // of the part's first pixel; three channels, side by side
  LayoutSize pitch;             // bytes from one row to the next
  int height, width;            // of the part
  bool rows_reversed, columns_reversed, transposed;
};

// And where it belongs.
struct PlacedPart {
  ResizedPart part;
  unsigned char* target;  // [height, width, 3] of the result
};

// What pixel `place` of `count` is made of along an axis of `extent` pixels.
struct AxisSum {
  int first, end;
  float offset, step;  // in supports, from the center: of the first one, and of each to the next

  constexpr AxisSum(int extent, int count, int place) : first(0), end(0), offset(0), step(0) {
    const double scale = static_cast<double>(extent) / count;
    const double support = scale > 1 ? scale : 1;
    const double center = (place + 0.5) * scale;
    const double low = center - support + 0.5;
    const double high = center + support + 0.5;
    first = low > 0 ? static_cast<int>(low) : 0;
    end = high < extent ? static_cast<int>(high) : extent;
    offset = static_cast<float>((first - center + 0.5) / support);
    step = static_cast<float>(1 / support);
  }

  constexpr float weight(int pixel) const {
    const float away = offset + static_cast<float>(pixel - first) * step;
    const float weight = 1 - (away < 0 ? -away : away);
    return weight > 0 ? weight : 0;
  }
};

// Writes the three channels of the pixel at (y, x) of a result of that size.
constexpr void resize_pixel(const ResizedPart& part, int height, int width, int y, int x,
                            unsigned char* target) {
  const int rows = part.transposed ? width : height;
  const int columns = part.transposed ? height : width;
  const int upright_row = part.transposed ? x : y;
  const int upright_column = part.transposed ? y : x;
  const AxisSum vertical(part.height, rows, part.rows_reversed ? rows - 1 - upright_row : upright_row);
  const AxisSum horizontal(part.width, columns,
                           part.columns_reversed ? columns - 1 - upright_column : upright_column);
  float sums[3] = {0, 0, 0};
  float total = 0;
  for (int row = vertical.first; row < vertical.end; ++row) {
    const unsigned char* const line = part.pixels + row * part.pitch;
    const float row_weight = vertical.weight(row);
    for (int column = horizontal.first; column < horizontal.end; ++column) {
      const float weight = row_weight * horizontal.weight(column);
      total += weight;
      for (int channel = 0; channel < 3; ++channel)
        sums[channel] += weight * static_cast<float>(line[3 * column + channel]);
    }
  }
  for (int channel = 0; channel < 3; ++channel)
    target[channel] = static_cast<unsigned char>(sums[channel] / total + 0.5F);
}

}  // namespace tessera
