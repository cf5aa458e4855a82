// Parts of images as images of one size: blockIdx.y is the image.
#pragma once

#include "resized_part.h"

namespace tessera {

// y: [images, height, width, 3]
__device__ inline void resize_parts(const ResizedPart* parts, unsigned char* y, int height, int width) {
  const ResizedPart part = parts[blockIdx.y];
  const int pixels = height * width;
  unsigned char* const image = y + static_cast<LayoutSize>(blockIdx.y) * pixels * 3;
  for (int pixel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); pixel < pixels;
       pixel += static_cast<int>(gridDim.x * blockDim.x)) {
    resize_pixel(part, height, width, pixel / width, pixel % width,
                 image + 3 * static_cast<LayoutSize>(pixel));
  }
}

}  // namespace tessera
