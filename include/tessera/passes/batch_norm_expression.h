// Batch normalization of channels-last tensors written out in elementwise work and sums, where no kernel of
// its own does it.
#pragma once

#include <optional>
#include <vector>

#include "tessera/ops/functions.h"

namespace tessera {

// Over all axes but the last, the channels.
ops::ReduceOptions over_all_but_channels(const Value* x);

// How many numbers of x: [..., C] each channel has, also where C is 0.
int64_t rows_of_channels(const Value* x);

// mean(x^2) - mean(x)^2, not below the 0 that rounding could take it to. [C]
Value* variance_of_means(Value* mean_of_squares, Value* mean);

// [C] each
struct BatchStatistics {
  Value* mean = nullptr;
  Value* variance = nullptr;
};

// Of x: [..., C], in that type, by one pass over x.
BatchStatistics batch_statistics(Value* x, DataType type);

// (x - mean) scale / sqrt(variance + epsilon) + bias, computed in the type of the mean, in that of x.
// x: [..., C]; the others: [C].
Value* normalize_channels(Value* x, Value* mean, Value* variance, Value* scale, Value* bias, double epsilon);

// What normalize_channels made a value of, of which nothing between is read elsewhere.
struct NormalizedChannels {
  Value* x = nullptr;
  Value* mean = nullptr;
  Value* factor = nullptr;  // scale / sqrt(variance + epsilon)
  Value* bias = nullptr;
  std::vector<Node*> nodes;
};

std::optional<NormalizedChannels> match_normalized_channels(Value* y);

// y = relu(n), relu(n + residual) or relu(n + n'), with n and n' of normalize_channels.
struct NormalizedInput {
  std::vector<NormalizedChannels> norms;
  Value* residual = nullptr;  // null without one
  std::vector<Node*> nodes;   // all of them
};

std::optional<NormalizedInput> match_normalized_input(Value* y);

// From the sums of dy and of dy (x - mean), in the type of the statistics. [C] each, but dx, which is
// dy factor + x correlation + offset in the type of x.
struct BatchNormGradients {
  Value* factor = nullptr;
  Value* correlation = nullptr;
  Value* offset = nullptr;
  Value* dx = nullptr;
  Value* dscale = nullptr;
  Value* dbias = nullptr;
};

// `gradient`: a batch_norm_gradient, whose inputs are read.
BatchNormGradients gradients_from_sums(const Node& gradient, Value* gradient_sums, Value* products);

}  // namespace tessera
