// Batch normalisation of channels-last tensors written out in elementwise work and sums, where no kernel of
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
Value* normalise_channels(Value* x, Value* mean, Value* variance, Value* scale, Value* bias, double epsilon);

// What normalise_channels made a value of, of which nothing between is read elsewhere.
struct NormalisedChannels {
  Value* x = nullptr;
  Value* mean = nullptr;
  Value* factor = nullptr;  // scale / sqrt(variance + epsilon)
  Value* bias = nullptr;
  std::vector<Node*> nodes;
};

std::optional<NormalisedChannels> match_normalised_channels(Value* y);

// y = relu(n), relu(n + shortcut) or relu(n + n'), with n and n' of normalise_channels.
struct NormalisedInput {
  std::vector<NormalisedChannels> norms;
  Value* shortcut = nullptr;  // null without one
  std::vector<Node*> nodes;   // all of them
};

std::optional<NormalisedInput> match_normalised_input(Value* y);

// From the sums of dy and of dy (x - mean), in the type of the statistics. [C] each, but dx, which is
// dy factor + x slant + offset in the type of x.
struct BatchNormGradients {
  Value* factor = nullptr;
  Value* slant = nullptr;
  Value* offset = nullptr;
  Value* dx = nullptr;
  Value* dscale = nullptr;
  Value* dbias = nullptr;
};

// `gradient`: a batch_norm_gradient, whose inputs are read.
BatchNormGradients gradients_from_sums(const Node& gradient, Value* slopes, Value* products);

}  // namespace tessera
