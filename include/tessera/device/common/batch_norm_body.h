// What a batch normalization, alone or fused with its neighbors, reads and writes: which input or output of
// the node plays which part.
#pragma once

#include <optional>
#include <string_view>

#include "tessera/graph/graph.h"

namespace tessera::backend {

// batch_norm_training, perhaps a sum with a residual, perhaps relu; the result is output 0.
struct BatchNormBody {
  size_t x = 0, scale = 0, bias = 0;     // inputs
  std::optional<size_t> residual;        // input
  std::optional<size_t> mean, variance;  // outputs; without them nothing reads the statistics
  bool relu = false;
  double epsilon = 0;
};

// batch_norm_gradient of dz, which is dy or dy + dy2, where the relu's result was positive.
struct BatchNormGradientBody {
  size_t x = 0, scale = 0, mean = 0, variance = 0;  // inputs
  size_t dy = 0;
  std::optional<size_t> dy2;
  std::optional<size_t> y;                      // the relu's result, read for its mask
  std::optional<size_t> bias;                   // or the normalization's bias, to find the mask from x
  std::optional<size_t> dx, dscale, dbias, dz;  // outputs that something reads
  double epsilon = 0;
};

// max_pool of the relu of a normalization by given statistics; the pooled values are output 0, their
// positions output 1.
struct PooledBatchNormBody {
  size_t x = 0, scale = 0, bias = 0, mean = 0, variance = 0;  // inputs
  double epsilon = 0;
  const Node* pool = nullptr;  // in the body
};

// batch_norm_gradient of max_pool_gradient where the relu's result, found from x, was positive.
struct PooledBatchNormGradientBody {
  BatchNormGradientBody norm;  // its dy is that of the pooled values
  size_t positions = 0;        // input
  const Node* pool = nullptr;  // the pooling's gradient, in the body
};

// All throw Error(unsupported) for a node with another body, for x of other types than fp32, fp16 and bf16,
// for statistics of other types than fp32, and for empty tensors.
BatchNormBody parse_batch_norm(const Node& node);
BatchNormGradientBody parse_batch_norm_gradient(const Node& node);
PooledBatchNormBody parse_pooled_batch_norm(const Node& node);
PooledBatchNormGradientBody parse_pooled_batch_norm_gradient(const Node& node);

// Throws Error(unsupported) for what no batch normalization kernel takes, as said above.
void check_batch_norm_types(const Value& x, const Value& scale);

}  // namespace tessera::backend
