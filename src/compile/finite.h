// The search for the node that made the first NaN.
#pragma once

#include <vector>

#include "tessera/compile/queue.h"
#include "tessera/graph/graph.h"

namespace tessera {

// Waits for the queue, which made the outputs. Throws Error(not_finite) naming the node and the element when
// one of the outputs, which lie in the device's memory, holds a NaN or an infinity.
void check_finite(const Node& node, const std::vector<void*>& outputs, Queue& queue);

}  // namespace tessera
