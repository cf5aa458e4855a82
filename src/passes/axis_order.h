// How an operator that knows no layout works on values whose axes lie in another order. A value y is stored
// in `order` when y = transpose(stored, order).
#pragma once

#include "tessera/graph/graph.h"

#include "passes/permutation.h"

namespace tessera::passes {

// Whether the node can do its work on values of that many axes in any order of them.
bool works_in_any_order(const Node& node, size_t rank);

// Whether an input of such a node has to be stored in the order: others are small operands that broadcast, or
// indices, which reordered_operand() adapts.
bool follows_order(const Node& node, size_t input, size_t rank);

// The input of fewer axes than `order` for a node whose values are stored in it, at most transposed.
Value* reordered_operand(const Node& node, size_t input, const Permutation& order);
// Whether that takes a transpose.
bool operand_moves(const Node& node, size_t input, const Permutation& order);

// The node's attributes for values stored in the order: axes and lists with a number for each axis.
Attributes reordered_attributes(const Node& node, const Permutation& order);

// The order in which the node then makes its results, which may have fewer axes.
Permutation result_order(const Node& node, const Permutation& order);

}  // namespace tessera::passes
