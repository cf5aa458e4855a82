// Batch normalization of training and its gradient as graphs of clusters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tessera/device/common/subgraph_kernel.h"

namespace tessera::cuda {

// By operator.
const std::map<std::string, GraphRule>& batch_norm_rules();

// Of batch_norm_inference: y by the expression that all kernels of batch_norm_training have, and so to its
// bits, where the operator's own formula takes fewer steps and rounds otherwise.
std::vector<Value*> recomputed_batch_norm(const Node& node, const std::vector<Value*>& inputs);

}  // namespace tessera::cuda
