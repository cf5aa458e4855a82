// The kernel of every collective on every device.
#pragma once

#include "tessera/compile/device.h"

namespace tessera {

// Of several ranks the node's communicator, with copies to the host and back where the device's memory is not
// the host's; refused where the compilation has none for the group, unless the device only plans. Of one rank
// a copy on the device. The device outlives it.
KernelCandidate communication_candidate(const Device& device);

}  // namespace tessera
