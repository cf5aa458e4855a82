// What a node of kind "product_cluster" is made of.
#pragma once

#include <memory>
#include <optional>

#include "tessera/graph/graph.h"

namespace tessera::cuda {

struct ProductParts {
  const Node* product = nullptr;  // the member that is it, alone or fused
  const Node* before = nullptr;   // the member that makes its first factor; null where the node reads that
  // Bodies in simple operators, whose inputs are the node's: what makes the first factor, null without; and
  // what follows the product, which is the last input of this one.
  std::unique_ptr<Graph> begin, end;
};

// Refuses other nodes.
ProductParts parts_of(const Node& node);

// The first factor among what a product, alone or fused, reads; null where it makes that itself.
const Value* first_factor(const Node& product);

// Of what the work before a product reads, the place of the first that could take the factor's place itself.
std::optional<size_t> worked_on(const Node& before);

// The body of the node with the product and what follows it as one node of that kind, apart from the work
// before it.
std::unique_ptr<Graph> with_work_apart(const Node& node);

}  // namespace tessera::cuda
