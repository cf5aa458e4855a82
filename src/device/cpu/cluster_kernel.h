// The kernel that runs a cluster's program over all tiles with all threads.
#pragma once

#include <memory>

#include "tessera/compile/kernel.h"

#include "device/cpu/cluster_program.h"

namespace tessera::cpu {

// What the node computes in primitives: a copy of a fused node's body, or a body of one node made for it.
std::unique_ptr<Graph> cluster_body(const Node& node);

// "loops.cluster": takes fused nodes of kind "cluster", single elementwise nodes and single reductions.
KernelCandidate cluster_candidate();

}  // namespace tessera::cpu
