// Attention of a few queries to the keys that their lengths show, as the next token of a text has.
#pragma once

#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {

// "loops.few_query_attention". What is hidden is not read: products would go over all keys.
KernelCandidate few_query_candidate();
// Whether it takes the node.
bool has_few_query_kernel(const Node& attention);

}  // namespace tessera::cpu
