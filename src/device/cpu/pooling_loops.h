// Pooling of channels-last activations, some rows of the result (or of the input's gradient) at a time.
#pragma once

#include <cstdint>

#include "tessera/base/data_type.h"

namespace tessera::cpu {

// Windows over three spatial axes; missing ones come first and have extent 1.
struct PoolGeometry {
  DataType type = DataType::fp32;
  int64_t images = 1;
  int64_t channels = 1;
  int64_t input[3] = {1, 1, 1};
  int64_t output[3] = {1, 1, 1};
  int64_t window[3] = {1, 1, 1};
  int64_t strides[3] = {1, 1, 1};
  int64_t padding[3] = {0, 0, 0};  // before the image
  bool count_padding = true;

  // Rows along the last spatial axis, over images and the other axes.
  int64_t output_rows() const { return images * output[0] * output[1]; }
  int64_t input_rows() const { return images * input[0] * input[1]; }
};

// Each works on rows [begin, end): of the result going forward, of the input's gradient going back, which is
// gathered from all windows that an element lies in.
void max_pool(const PoolGeometry& geometry, const void* x, void* y, uint8_t* position, int64_t begin,
              int64_t end);
void max_pool_gradient(const PoolGeometry& geometry, const void* dy, const uint8_t* position, void* dx,
                       int64_t begin, int64_t end);
void average_pool(const PoolGeometry& geometry, const void* x, void* y, int64_t begin, int64_t end);
void average_pool_gradient(const PoolGeometry& geometry, const void* dy, void* dx, int64_t begin,
                           int64_t end);

}  // namespace tessera::cpu
