// Pooling of channels-last activations, some rows of the result (or of the input's gradient) at a time.
#pragma once

#include <cstdint>

#include "tessera/device/common/pool_geometry.h"

namespace tessera::cpu {

using backend::PoolGeometry;

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
