// Inputs that every part of a kernel counts for.
#pragma once

#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/graph/graph.h"

namespace tessera::testing {

// Changes a few of a node's random inputs where most of them might be left out unnoticed: a maximum or
// minimum has its extreme, a product its one factor that counts and a softmax its largest logit in the last
// place of every second row; some of what is compared is equal; conditions are neither all true nor all
// false.
void make_decisive(const Node& node, std::vector<Tensor>& inputs);

}  // namespace tessera::testing
