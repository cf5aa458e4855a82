// Warps and shared memory of short_attention.cuh.
#pragma once

#include "layout.h"

namespace tessera {

struct ShortAttentionLayout {
  static constexpr LayoutSize rows = 16;      // queries, and keys, of a warp
  static constexpr LayoutSize longest = 128;  // texts, whose scores the registers of their warps hold
  static constexpr LayoutSize widest = 128;   // likewise
  static constexpr LayoutSize padding = 8;    // elements after each row: no two of 8 share a bank
  static constexpr LayoutSize element_size = 2;

  LayoutSize queries, keys, width;
  bool gradient;

  constexpr LayoutSize query_rows() const { return layout_rounded_up(queries, rows); }
  constexpr LayoutSize key_rows() const { return layout_rounded_up(keys, rows); }
  // Of a head. Where there are more keys than queries, or fewer, some have half of the work.
  constexpr LayoutSize warps() const {
    return (query_rows() > key_rows() ? query_rows() : key_rows()) / rows;
  }
  // Of a block.
  constexpr LayoutSize heads() const { return warps() >= 4 ? 1 : 4 / warps(); }
  constexpr LayoutSize threads() const { return 32 * warps() * heads(); }

  // Of a head, in elements, one after the other: q, k, v; of the gradient also dy, the weights and their
  // gradients.
  constexpr LayoutSize query_elements() const { return query_rows() * (width + padding); }
  constexpr LayoutSize key_elements() const { return key_rows() * (width + padding); }
  constexpr LayoutSize weight_elements() const { return query_rows() * (key_rows() + padding); }
  constexpr LayoutSize elements() const {
    const LayoutSize operands = query_elements() + 2 * key_elements();
    return gradient ? operands + query_elements() + 2 * weight_elements() : operands;
  }
  constexpr LayoutSize bytes() const { return heads() * elements() * element_size; }
};

}  // namespace tessera
