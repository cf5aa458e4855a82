// The windows of a pooling.
#pragma once

#include <cstdint>

#include "tessera/graph/graph.h"

namespace tessera::backend {

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

// Of max_pool, average_pool or the gradient of one; "input" and "output" are those of the pooling also where
// the node is its gradient. Throws Error(unsupported) for a tensor without elements or more than three
// spatial axes.
PoolGeometry pool_geometry(const Node& node);

}  // namespace tessera::backend
