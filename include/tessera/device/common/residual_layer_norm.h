// layer_norm(residual + dropout(branch + bias)) of training, and its gradient. Each would otherwise be two to
// four passes over whole activations. Without dropout the first is left alone: the matrix product before it
// adds bias and residual itself. Norms may be those by the root mean square.
#pragma once

#include <optional>

#include "tessera/graph/graph.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera::backend {

// "residual_layer_norm": over the last axis; the sum that is normalized is a result too where others read it.
FusionPattern residual_layer_norm_pattern();
// "residual_layer_norm_gradient": the gradient of the normalization, of the sum together with what comes to
// it from its other readers, of what dropout was applied to, and of the bias; without dropout where there is
// such a sum.
FusionPattern residual_layer_norm_gradient_pattern();

// Whether a layer norm, or its gradient, is of several rows, each of the last axis.
bool is_over_last_axis(const Node& norm);

// As in dropout: element i is kept where random number i of the stream is at least the rate.
struct DropoutBody {
  size_t counter = 0;  // input
  int64_t stream = 0;
  float rate = 0;
  float factor = 1;  // of what is kept
};

struct ResidualLayerNormBody {
  size_t branch = 0, scale = 0;                 // inputs
  std::optional<size_t> shift, residual, bias;  // inputs; the bias is of the branch
  std::optional<DropoutBody> dropout;
  size_t y = 0;                                        // output
  std::optional<size_t> sum, mean, inverse_deviation;  // outputs that something reads
  double epsilon = 0;
  bool centered = true;
};

struct ResidualLayerNormGradientBody {
  size_t dy = 0, sum = 0, scale = 0, mean = 0, inverse_deviation = 0;  // inputs
  std::optional<size_t> incoming;  // input: the sum's gradient from others
  std::optional<DropoutBody> dropout;
  std::optional<size_t> dbranch;                      // output: that of what dropout was applied to
  std::optional<size_t> dsum, dscale, dshift, dbias;  // outputs that something reads
  bool centered = true;
};

// What the node's values are to its kernels; of a layer_norm that is not fused x is the branch, and of its
// gradient the sum. Refuses (refusal.h) other types than fp32, fp16 and bf16, and norms over more axes than
// the last.
ResidualLayerNormBody read_residual_layer_norm(const Node& node);
ResidualLayerNormGradientBody read_residual_layer_norm_gradient(const Node& node);

}  // namespace tessera::backend
