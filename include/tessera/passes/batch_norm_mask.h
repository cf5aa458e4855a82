// The relu's mask on its way to a batch normalization's gradient, for the passes that look for it.
#pragma once

#include <optional>

#include "tessera/graph/graph.h"

namespace tessera {

// select(greater(y, 0), dy, 0), of which nothing else reads the comparison.
struct ReluMask {
  Node* select = nullptr;
  Node* greater = nullptr;
};

std::optional<ReluMask> find_relu_mask(Value* gradient);

// The mask that alone reads the value.
std::optional<ReluMask> mask_after(const Value* value);

// The training normalization whose relu the mask is of and whose gradient the node is; null when they are not
// the same.
Node* masked_normalization(const Node& gradient, const ReluMask& mask);

// The result of a training normalization, recomputed from x and the statistics.
Value* recompute_normalization(const Node& norm);

// Finds the mask of that normalization from x, which the gradient reads anyway, instead of from the relu's
// result. Returns the node that recomputes the result.
Node* mask_by_input(const ReluMask& mask, const Node& norm);

}  // namespace tessera
