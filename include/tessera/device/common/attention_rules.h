// Attention and its gradient as small graphs of matrix products and clusters, which write the scores of all
// pairs to memory.
#pragma once

#include <map>
#include <string>

#include "tessera/device/common/subgraph_kernel.h"

namespace tessera::backend {

// By operator. All within is fp32 (fp64 of fp64), whatever the operands are.
const std::map<std::string, GraphRule>& attention_rules();

}  // namespace tessera::backend
