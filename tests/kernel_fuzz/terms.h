// How many terms of which size an operator sums, of inputs that are at hand.
#pragma once

#include <optional>
#include <vector>

#include "tessera/graph/operator.h"

#include "support/tolerance.h"

namespace tessera::testing {

using Inputs = std::vector<const Tensor*>;

// The largest finite magnitude.
double largest(const Tensor& tensor);

// Terms and magnitude of an operator whose errors follow from them alone.
std::optional<Problem> problem_of(const Node& node, const Inputs& inputs, const std::vector<Tensor>& outputs);

}  // namespace tessera::testing
