// Parts of images as images of one size: blockIdx.y is the image.
#pragma once

#include "resized_part.h"

namespace tessera {

__device__ inline void resize_parts(const PlacedPart* parts, int height, int width) {
  const PlacedPart placed = parts[blockIdx.y];
  const int pixels = height * width;
  for (int pixel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); pixel < pixels;
       pixel += static_cast<int>(gridDim.x * blockDim.x)) {
    resize_pixel(placed.part, height, width, pixel / width, pixel % width,
                 placed.target + 3 * static_cast<LayoutSize>(pixel));
  }
}

}  // namespace tessera
