// Convolutions and matrix products with what follows them in one kernel: a bias, factors, a residual,
// activations.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera::backend {

// What the device's kernels may end with.
struct EpilogueLimits {
  // Asked of nodes whose schema says that they are activations. Empty: any.
  std::function<bool(const Node& activation)> takes_activation = {};
  // Libraries' epilogues: a bias, a residual and an activation, in this order, each at most once. Otherwise
  // additions and multiplications with one number per channel (the last axis), one addition of a whole
  // tensor and activations in any order.
  bool ordered = false;
};

// Kind and operator `main`. The chain goes on while the value so far has one reader and keeps its type.
// Roles: those of the operator; "bias", also where it is added first, and then "biased", that sum; "step",
// each result after that.
FusionPattern contraction_pattern(const std::string& main, EpilogueLimits limits = {});

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

// Of a node of the pattern; a contraction that is not fused gives a chain without steps. Of a node that fuses
// several such chains, roles of each have a prefix of their own. Throws Error(unsupported) for any other
// node.
FusedChain read_chain(const Node& node, const std::string& prefix = "");

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
