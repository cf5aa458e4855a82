// Reverse-mode differentiation of a graph, by one walk over the operators' gradient rules.
#pragma once

#include <span>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

// Appends to the graph the nodes that compute the gradient of the scalar floating `loss` to each of the given
// values, and returns them in that order; zeros where the loss does not depend on the value, and for inputs
// that are constant, whatever depends on them. `loss_gradient`, when given, is the gradient that flows into
// the loss (a scalar such as the loss scale) instead of 1.
// Where a composite operator has no gradient rule of its own, all that read its result, outputs and updates
// included, read its decomposition instead. Nothing is erased: values that the caller holds stay valid and
// mean what they meant.
// Throws Error(invalid_argument) naming an operator on the way that has no gradient.
std::vector<Value*> differentiate(Graph& graph, Value* loss, std::span<Value* const> with_respect_to,
                                  Value* loss_gradient = nullptr);

}  // namespace tessera
