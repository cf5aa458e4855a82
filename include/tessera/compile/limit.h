// How fast a node could run on a device: the roofline model (Williams, Waterman, Patterson 2009).
#pragma once

#include <optional>

#include "tessera/compile/executable.h"

namespace tessera {

// The least time in which the hardware can move the node's bytes and do its flops, one beside the other. What
// lies in a cache already, or takes fewer flops by another algorithm, may run in less.
struct NodeLimit {
  double seconds = 0;
  bool by_memory = false;  // else by arithmetic
};

// None where the description does not say what it takes.
std::optional<NodeLimit> limit_of(const NodeReport& node, const DeviceDescription& device);

}  // namespace tessera
