// The relu's mask on its way to a batch normalisation's gradient, for the passes that look for it.
#pragma once

#include <optional>

#include "tessera/graph/graph.h"

namespace tessera::passes {

// select(greater(y, 0), dy, 0), of which nothing else reads the comparison.
struct ReluMask {
  Node* select = nullptr;
  Node* greater = nullptr;
};

std::optional<ReluMask> find_relu_mask(Value* gradient);

// The training normalisation whose relu the mask is of and whose gradient the node is; null when they are not
// the same.
Node* masked_normalisation(const Node& gradient, const ReluMask& mask);

}  // namespace tessera::passes
