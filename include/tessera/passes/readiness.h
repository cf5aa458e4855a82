// In which order the values of a graph come to be there, and what exchanges them with other ranks.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "tessera/graph/graph.h"

namespace tessera {

// Products, convolutions, normalizations, collectives and the like, and fusions that hold one; the rest is
// light: elementwise work, sums, movement.
bool takes_long(const Node& node);

// Exchanges tensors with other ranks; of one rank it is the identity.
bool is_collective(const Node& node);

// Of each value the place, in the graph's order, of the last node that it waits for among those that take
// long. What is light counts for nothing, wherever it stands. So the ranks of a group agree on
// which of two values is first, also where constants of their own let one of them fold a light node away.
class Readiness {
 public:
  explicit Readiness(const Graph& graph);

  size_t of(const Value& value) const;       // 0 where it waits for none
  size_t of_inputs(const Node& node) const;  // of the last one

 private:
  std::unordered_map<const Node*, size_t> of_results_;
};

}  // namespace tessera
