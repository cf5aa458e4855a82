// Shared memory of warpgroup_window_gradient.cuh, in floats.
#pragma once

#include "layout.h"

namespace tessera {

struct WindowGradientLayout {
  static constexpr LayoutSize window = 3;              // rows and columns
  static constexpr LayoutSize threads = window * 128;  // a warpgroup for each column
  static constexpr LayoutSize slice = 64;              // inputs, and outputs, of a block
  static constexpr LayoutSize chunk = 4;               // floats of an access
  static constexpr LayoutSize step = 8;                // pixels of a product

  LayoutSize width;      // of an image
  LayoutSize item_rows;  // of an item

  constexpr LayoutSize padded_width() const { return layout_rounded_up(width, step); }

  // A row of x as it comes, padded so that fewer threads share a bank where it is read to be transposed;
  // transposed, as 4 pixels of every channel, then the next 4, so that no threads do where it is written; a
  // row of dy with a pixel on either side, where four neighbors begin in different banks.
  static constexpr LayoutSize raw_pitch = slice + chunk, transposed_pitch = slice * chunk + chunk;
  static constexpr LayoutSize dy_pitch = slice + 8;
  constexpr LayoutSize raw_row() const { return padded_width() * raw_pitch; }
  constexpr LayoutSize transposed_row() const { return padded_width() / chunk * transposed_pitch; }
  constexpr LayoutSize dy_row() const { return (padded_width() + window - 1) * dy_pitch; }
  // Transposed are the rows of an item, those around them, and the next item's; one more stays zero.
  constexpr LayoutSize raw_rows() const { return 2 * item_rows; }
  constexpr LayoutSize transposed_rows() const { return raw_rows() + window - 1; }
  constexpr LayoutSize dy_rows() const { return 3 * item_rows; }
  constexpr LayoutSize elements() const {
    return raw_rows() * raw_row() + (transposed_rows() + 1) * transposed_row() + dy_rows() * dy_row();
  }
};

}  // namespace tessera
