// Tiles of as many elements as pooling windows move on by (pooled_batch_norm.cuh), along one axis.
#pragma once

#include "layout.h"

namespace tessera {

struct PoolTileLayout {
  LayoutSize window, stride, padding;  // padding: before the image, less than the window

  // The first window over tile 0, counted from that which begins with the padding. Towards zero, thus
  // upwards.
  constexpr LayoutSize first() const { return (padding - window + 1) / stride; }
  // How many windows lie over a tile.
  constexpr LayoutSize count() const { return (stride - 1 + padding) / stride - first() + 1; }
};

}  // namespace tessera
