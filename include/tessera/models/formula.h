// Weights, images and labels from a formula instead of a file: other programs make the same numbers, so that
// the outputs of a network can be compared. tests/golden/README.md defines it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/nn/context.h"

namespace tessera::models::formula {

// In [-1, 1), a multiple of 2^-23.
float uniform(std::string_view name, uint64_t index);
int64_t label(std::string_view name, uint64_t index, int64_t classes);

// fp32 of shape [N, H, W, C]; the formula counts the elements in the order N, C, H, W.
Tensor images(std::string_view name, const Shape& shape);
// int32 [count].
Tensor labels(std::string_view name, int64_t count, int64_t classes);

// A starting value for each variable of a network, in our layout (the formula counts in that of the files).
std::map<std::string, Tensor> weights(const std::vector<nn::Variable>& variables);

}  // namespace tessera::models::formula
