// Readers of an activation that run after the loss, and copies of it that are made for them.
#pragma once

#include <functional>
#include <vector>

#include "tessera/graph/graph.h"

#include "passes/dependence.h"

namespace tessera::passes {

// A view of one value that is one value.
bool is_view(const Node& node);

// Those of the readers of a value that the keeper does not need, and that need all readers that it does: they
// run after the loss. The keeper is a node of the backward half to which what the value is made of is kept.
// Empty where making the value anew for them would not let it die early. The readers must be sources of the
// dependence.
std::vector<Node*> late_readers(const Dependence& dependence, const Node& keeper,
                                const std::vector<Node*>& readers);

// Gives the reader what `make` makes right before it, in place of y, also where it reads views of y: the
// schedule follows the graph's order where no memory is freed.
void recompute_for(Graph& graph, const Value* y, Node* reader, const std::function<Value*()>& make);

// Values of elementwise nodes: the late readers get copies of those whose operands are kept to the backward
// half in any case; the largest whose copies have together at most so many bytes. `beside`: only where an
// elementwise node of their shape keeps the operands, with which the copies are made. Returns whether there
// are any.
struct ElementwiseCopies {
  double most_bytes = 0;
  bool beside = false;
};
bool recompute_elementwise(Graph& graph, const ElementwiseCopies& copies);

}  // namespace tessera::passes
