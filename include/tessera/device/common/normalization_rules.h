// layer_norm, group_norm and their gradients as small graphs of clusters. Values that two clusters need are
// computed twice where that is cheaper than memory.
#pragma once

#include <map>
#include <string>

#include "tessera/device/common/subgraph_kernel.h"

namespace tessera::backend {

// By operator.
const std::map<std::string, GraphRule>& normalization_rules();

}  // namespace tessera::backend
