// What the GPU has one kernel for beside single operators.
#pragma once

#include <vector>

#include "tessera/passes/pass.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// In the order in which they are looked for.
std::vector<FusionPattern> fusion_patterns(const PassOptions& options, const GpuTraits& gpu);

// PassTarget::recomputes_activation.
bool recomputes_activation(const Node& weight_gradient, const PassOptions& options, const GpuTraits& gpu);

}  // namespace tessera::cuda
