// layer_norm(residual + dropout(branch + bias)), and layer_norm alone, over the last axis in one kernel.
#pragma once

#include <string>

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// Whether a layer_norm is over the last axis, of several rows, in types that the kernel takes.
bool has_layer_norm_kernel(const Node& norm);

// For a layer_norm or a fused:residual_layer_norm.
KernelCandidate layer_norm_candidate(const std::string& name);

}  // namespace tessera::cpu
