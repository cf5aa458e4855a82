// Collectives that NCCL does on the queue of a GPU.
#pragma once

#include <string>

#include "tessera/compile/device.h"

#include "device/cuda/communication/nccl_groups.h"

namespace tessera::cuda {

// Why NCCL does not do what the node asks for, whoever takes part; "" where it does.
std::string nccl_refusal(const Node& node);

// Of the groups, which outlive it.
KernelCandidate nccl_candidate(const NcclGroups& groups);

}  // namespace tessera::cuda
