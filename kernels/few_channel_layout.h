// Shared memory of the kernels of few_channels.cuh and few_channel_gradient.cuh.
#pragma once

#include "layout.h"

namespace tessera {

// Rows of x, in elements. A row begins with zeros for the padding. The run under output column o begins at
// o * step() + first(), an even place, since two elements are read at once; so some runs begin one element
// early, at lead(), whose weight is zero.
struct FewChannelLayout {
  static constexpr LayoutSize unit = 8;  // elements of a run

  LayoutSize channels, width;  // of x
  LayoutSize outputs, out_width;
  LayoutSize window_rows, window_columns, stride, padding_left;
  LayoutSize item_rows;  // of the result, of an item

  constexpr LayoutSize padding() const { return padding_left * channels; }
  constexpr LayoutSize lead() const { return padding() % 2; }
  constexpr LayoutSize start() const { return layout_rounded_up(padding() + lead(), unit); }  // of the image
  constexpr LayoutSize first() const { return start() - padding() - lead(); }
  constexpr LayoutSize run() const { return window_columns * channels; }
  constexpr LayoutSize run_units() const { return layout_parts(run() + lead(), unit); }
  constexpr LayoutSize units() const { return window_rows * run_units(); }
  constexpr LayoutSize step() const { return stride * channels; }  // from a column of the result to the next
  constexpr LayoutSize pitch() const {
    const LayoutSize image = start() + width * channels;
    const LayoutSize read = first() + (out_width - 1) * step() + run_units() * unit;
    return layout_rounded_up(image > read ? image : read, unit);
  }
  constexpr LayoutSize rows() const { return (item_rows - 1) * stride + window_rows; }  // of an item
  constexpr LayoutSize item_elements() const { return rows() * pitch(); }

  // The forward convolution's weights, as 16-byte registers of a warp's instructions: two for each lane, each
  // group of 32 outputs, and each step of so many units.
  constexpr LayoutSize weight_vectors(LayoutSize step_units) const {
    return layout_parts(units(), step_units) * (outputs / 32) * 2 * 32;
  }

  // The gradient of an item, for instructions that add over so many pixels: rows that begin in different
  // banks.
  constexpr LayoutSize padded_pixels(LayoutSize depth) const {
    return layout_rounded_up(item_rows * out_width, depth);
  }
  constexpr LayoutSize gradient_pitch() const { return outputs + 8; }
  constexpr LayoutSize gradient_elements(LayoutSize depth) const {
    return padded_pixels(depth) * gradient_pitch();
  }
};

// Bytes of a block's shared memory: weights, then the rows of two items, where the sums of its threads end
// up.
constexpr LayoutSize few_channel_forward_bytes(const FewChannelLayout& layout, LayoutSize element_bytes,
                                               LayoutSize step_units, LayoutSize threads) {
  const LayoutSize items = 2 * layout.item_elements() * element_bytes;
  const LayoutSize sums = 2 * threads * static_cast<LayoutSize>(sizeof(float));
  return 16 * layout.weight_vectors(step_units) + (items > sums ? items : sums);
}

// Rows and gradients of two items, then the place in the rows of each pixel.
constexpr LayoutSize few_channel_gradient_bytes(const FewChannelLayout& layout, LayoutSize element_bytes,
                                                LayoutSize depth) {
  return 2 * (layout.item_elements() + layout.gradient_elements(depth)) * element_bytes +
         layout.padded_pixels(depth) * static_cast<LayoutSize>(sizeof(int));
}

}  // namespace tessera
