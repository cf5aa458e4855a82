// Training: batch normalization with what follows it, and its gradient with what precedes it. Each would
// otherwise be a pass over whole activations of its own. The gradients come first in a device's list: they
// look for the forward nodes that the other half hides.
#pragma once

#include <optional>
#include <string_view>

#include "tessera/graph/graph.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera::backend {

// "batch_norm_gradient": with the relu's mask and the sum of two gradients before it. The mask of a relu of
// that normalization alone is found from x, which the gradient reads anyway.
FusionPattern batch_norm_gradient_pattern();
// "batch_norm_inference": normalization by statistics that the run computes, recomputed in the backward half,
// with its relu. Of given statistics little work is left, which clusters take.
FusionPattern recomputed_batch_norm_pattern();
// "batch_norm": with the residual's sum and the relu after it.
FusionPattern batch_norm_pattern();

// y = max_pool(relu(batch_norm(x))) in one kernel that reads x and writes the pooled values and their
// positions, and the gradient of the three in one that reads x, the pooled gradient and the positions. The
// tensor between the normalization and the pooling, and its gradient, are the largest of many networks, and
// never in memory. The gradients come first: once their masks are found from x, the pooling alone reads the
// relu's result.
//
// Forward needs the statistics first. They stay as a normalization whose result nobody reads, which
// reduce_to_statistics reduces to them or the convolution before it makes.
//
// "max_pool_batch_norm_gradient" and "batch_norm_max_pool"
FusionPattern pooled_batch_norm_gradient_pattern();
FusionPattern pooled_batch_norm_pattern();

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

// Of nodes of the patterns and of their operators. All throw Error(unsupported) for another node, for x of
// other types than fp32, fp16 and bf16, for statistics of other types than fp32, and for empty tensors.
BatchNormBody read_batch_norm(const Node& node);
BatchNormGradientBody read_batch_norm_gradient(const Node& node);
PooledBatchNormBody read_pooled_batch_norm(const Node& node);
PooledBatchNormGradientBody read_pooled_batch_norm_gradient(const Node& node);

// Throws Error(unsupported) for what no batch normalization kernel takes, as said above.
void check_batch_norm_types(const Value& x, const Value& scale);

}  // namespace tessera::backend
