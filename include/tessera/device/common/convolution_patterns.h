// Convolutions and their gradients fused with the batch normalizations around them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera::backend {

// "convolution_data_gradient": the gradient of a tensor that two nodes read, the sum of a convolution's data
// gradient and the other reader's gradient, and the mask of the relu that made the tensor.
FusionPattern masked_data_gradient_pattern();

// What the device says of a convolution, which its data gradient names. Empty: no.
using TakesGradients = std::function<bool(const Node& data_gradient, size_t normalizations)>;

// "summed_gradients": of a pointwise convolution whose input a relu made and a residual reads too. The data
// gradient gets the residual's gradient and the relu's mask; the gradients of the batch normalizations before
// that relu begin with sums of it, made beside; what is left of them is elementwise. The first pattern has
// the weight gradient too, which reads the same tensors; it recomputes the relu's result from two
// normalizations where the device wants that instead of reading it.
FusionPattern summed_gradients_pattern(TakesGradients takes, TakesGradients recomputes_mask);
FusionPattern summed_data_gradient_pattern(TakesGradients takes);
// "normalized_gradients": both gradients of the convolution before such a normalization. Their dy is that
// elementwise rest, made where both read it.
FusionPattern normalized_gradients_pattern(TakesGradients takes);
// Whether a weight gradient, in a graph that is not fused yet, becomes part of that last one, which makes the
// activation it reads from what the normalization read, so that nobody need keep it or copy it.
bool recomputes_activation(const Node& weight_gradient, const TakesGradients& takes_summed,
                           const TakesGradients& takes_normalized);

// The statistics of a training normalization added up where the convolution before it makes its result and
// the squares; the normalization becomes elementwise work, which fuses with what follows it.
//
// "convolution_statistics"
FusionPattern convolution_statistics_pattern(std::function<bool(const Node& convolution)> takes);
// "normalized_convolution": the same of a convolution that takes the rest of one or two normalizations before
// it, a sum with a residual and their relu.
using TakesNormalizedInput =
    std::function<bool(const Node& convolution, size_t normalizations, bool residual)>;
FusionPattern normalized_convolution_pattern(TakesNormalizedInput takes);

// A data gradient, to which an addend is added, where `mask` is positive.
struct MaskedSumBody {
  const Node* data = nullptr;   // convolution_data_gradient, in the body
  size_t addend = 0;            // input
  const Value* mask = nullptr;  // in the body, null without one
};

// batch_norm_inference(x) by the statistics of a run.
struct NormalizedTensor {
  size_t x = 0, scale = 0, bias = 0, mean = 0, variance = 0;  // inputs
  double epsilon = 0;
};

// A masked sum z, which is output 0; the sum of z over all but the channels, output 1, and those of z (x -
// mean), the outputs from 2 on; and, as the last output, perhaps the weight gradient of the same convolution,
// whose x is the mask.
struct SummedGradientsBody {
  MaskedSumBody sum;
  size_t dy = 0, weight = 0;                 // inputs
  bool weights = false;                      // the weight gradient is made
  std::vector<size_t> x, mean;               // inputs, of each normalization
  std::optional<size_t> mask;                // input, or
  std::vector<NormalizedTensor> recomputed;  // the normalizations whose sum's relu the mask is, of the same x
};

// The gradients of a convolution, output 0 to its x and output 1 to its weight, from d = dy * factor + y *
// correlation + offset, rounded to their type.
struct NormalizedGradientsBody {
  const Node* data = nullptr;                                     // convolution_data_gradient, in the body
  size_t dy = 0, y = 0, factor = 0, correlation = 0, offset = 0;  // inputs
  size_t weight = 0;                                              // input
  std::optional<size_t> x;                                        // input, or
  std::optional<NormalizedTensor> recomputed;                     // what x is the relu of
};

// y, output 3 where something else reads it, is the relu of normalized tensors, perhaps with a residual
// added; its convolution is output 0, the sums of that and of its squares over all but the channels outputs 1
// and 2.
struct NormalizedConvolutionBody {
  const Node* convolution = nullptr;          // in the body
  std::vector<size_t> x, mean, factor, bias;  // inputs, of each normalization
  std::optional<size_t> residual;             // input
  size_t weight = 0;                          // input
  bool keeps = false;                         // y is an output
};

// All throw Error(unsupported) for another node.
// The convolution, in the body, whose result is output 0, with the sums of it and of its squares over all but
// the channels as outputs 1 and 2. It has no bias of its own.
const Node& read_convolution_statistics(const Node& node);
MaskedSumBody read_masked_sum(const Node& node);
SummedGradientsBody read_summed_gradients(const Node& node);
NormalizedGradientsBody read_normalized_gradients(const Node& node);
NormalizedConvolutionBody read_normalized_convolution(const Node& node);

}  // namespace tessera::backend
