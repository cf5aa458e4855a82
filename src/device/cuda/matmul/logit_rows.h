// How many rows of logits a loss sees at once.
#pragma once

#include <cstdint>

#include "tessera/graph/graph.h"

namespace tessera::cuda {

// PassTarget::logit_rows: of 16 bits a quarter of them where all would take memory that a step notices, and
// products of so many are as fast; each further part costs a pass over the gradient of the weight.
int64_t logit_rows(const Node& product);

}  // namespace tessera::cuda
