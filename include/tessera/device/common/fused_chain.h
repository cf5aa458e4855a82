// What follows a convolution or matrix product inside a fused node.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::backend {

// The main node of a fused body and what is applied to its result, in order.
struct FusedChain {
  const Node* main = nullptr;   // the convolution or matrix product, in the body
  const Value* bias = nullptr;  // [channels], the main node's own or added first; null for none
  struct Step {
    const Node* node = nullptr;
    const Value* other = nullptr;     // the operand that is not the chain; null for activations
    bool takes_whole_tensor() const;  // `other` has the shape of the result
  };
  std::vector<Step> steps;

  bool adds_whole_tensor() const;  // a residual
};

// Reads the body of a fused node around its one node of operator `main_operator`; a node of that operator
// that is not fused gives a chain without steps. Throws Error(unsupported) when the body is no chain.
FusedChain parse_chain(const Node& node, std::string_view main_operator);

// A chain of at most a bias, the sum with a tensor of the result's shape, and an activation, in this order.
struct Epilogue {
  std::optional<size_t> bias;  // places among the inputs of the (fused) node
  std::optional<size_t> residual;
  const Node* activation = nullptr;
};

// Throws Error(unsupported) for any other chain, an activation that is not among `activations`, and a bias of
// another type than the result's.
Epilogue read_epilogue(const Node& node, const FusedChain& chain,
                       std::initializer_list<std::string_view> activations);

// Whether the value holds one number per channel, the last axis, and broadcasts along all others.
bool is_per_channel(const Value& value, int64_t channels);

}  // namespace tessera::backend
