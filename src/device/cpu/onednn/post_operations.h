// What follows a convolution or matrix product inside a fused node, as oneDNN post-operations.
#pragma once

#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/roles.h"

#include "device/cpu/onednn/onednn.h"

namespace tessera::cpu {

using backend::FusedChain;
using backend::input_index;
using backend::is_per_channel;
using backend::read_chain;

// Whether oneDNN has a post-operation for it, of the type that it makes.
bool takes_activation(const Node& activation);

// Appends the post-operations to the attributes and their operands to the list. `result` is the descriptor of
// the primitive's destination with its logical axes; the channel axis is `channel_axis` of it.
void append_post_operations(const Node& node, const FusedChain& chain, const dnnl::memory::desc& result,
                            size_t channel_axis, dnnl::primitive_attr& attributes,
                            std::vector<OnednnOperand>& operands);

}  // namespace tessera::cpu
