// The kernel that runs a cluster's program over all tiles with all threads.
#pragma once

#include <memory>

#include "tessera/compile/kernel.h"

#include "device/cpu/cluster/cluster_program.h"

namespace tessera::cpu {

// "loops.cluster": takes fused nodes of kind "cluster", single elementwise nodes and single reductions.
KernelCandidate cluster_candidate();

// Whether there are registers for all that the node reads and makes.
bool clusters_take(const Node& node);

}  // namespace tessera::cpu
