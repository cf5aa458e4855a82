// The rule for the initial values of states, and the short form of those whose elements are all the same.
#pragma once

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

// Throws Error(invalid_graph) unless an input of that role and type may start with the value.
void check_initial_value(InputRole role, const std::string& name, const TensorType& type,
                         const Tensor& initial);

// Every element of the result has the bits of the one in `element`.
Tensor spread(const Tensor& element, const Shape& shape);
// Whether it is the spread of its first element.
bool is_spread(const Tensor& tensor);

}  // namespace tessera
