// The kernel of a fused node that no kernel of its kind takes: its body, node by node.
#pragma once

#include <functional>
#include <vector>

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// `candidates` gives the kernels of the nodes inside.
KernelCandidate unfused_candidate(
    const std::function<std::vector<KernelCandidate>(const Node& node)>& candidates);

}  // namespace tessera::cpu
