// What follows a convolution or matrix product inside a fused node, as oneDNN post-operations.
#pragma once

#include "device/cpu/onednn.h"

namespace tessera::cpu {

// The main node of a fused body and what is applied to its result, in order.
struct FusedChain {
  const Node* main = nullptr;   // the convolution or matrix product, in the body
  const Value* bias = nullptr;  // [channels], the main node's own or added first; null for none
  struct Step {
    const Node* node = nullptr;
    const Value* other = nullptr;  // the operand that is not the chain; null for activations
  };
  std::vector<Step> steps;

  bool adds_whole_tensor() const;  // a shortcut
};

// Reads the body of a fused node around its one node of operator `main_operator`; a node of that operator
// that is not fused gives a chain without steps. Throws Error(unsupported) when the body is no chain.
FusedChain parse_chain(const Node& node, std::string_view main_operator);

// Which input of the (fused) node a value is. Throws Error(unsupported) when it is none.
size_t input_index(const Node& node, const Value* value);

// Appends the post-operations to the attributes and their operands to the list. `result` is the descriptor of
// the primitive's destination with its logical axes; the channel axis is `channel_axis` of it.
void append_post_operations(const Node& node, const FusedChain& chain, const dnnl::memory::desc& result,
                            size_t channel_axis, dnnl::primitive_attr& attributes,
                            std::vector<OnednnOperand>& operands);

}  // namespace tessera::cpu
