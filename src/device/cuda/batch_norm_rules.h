// Batch normalisation of training and its gradient as graphs of clusters.
#pragma once

#include <map>
#include <string>

#include "tessera/device/common/subgraph_kernel.h"

namespace tessera::cuda {

// By operator.
const std::map<std::string, backend::GraphRule>& batch_norm_rules();

}  // namespace tessera::cuda
