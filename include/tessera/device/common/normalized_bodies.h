// What convolutions and their gradients that are fused with normalizations read and write: which input or
// output of the node plays which part.
#pragma once

#include <optional>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::backend {

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

// All throw Error(unsupported) for a node with another body.
// The convolution, in the body, whose result is output 0, with the sums of it and of its squares over all but
// the channels as outputs 1 and 2. It has no bias of its own.
const Node& parse_convolution_statistics(const Node& node);
MaskedSumBody parse_masked_sum(const Node& node);
SummedGradientsBody parse_summed_gradients(const Node& node);
NormalizedGradientsBody parse_normalized_gradients(const Node& node);
NormalizedConvolutionBody parse_normalized_convolution(const Node& node);

}  // namespace tessera::backend
