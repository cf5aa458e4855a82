// The kernel of every collective on every device: the node's communicator, with copies to the host and back
// where the device's memory is not the host's.
#pragma once

#include "tessera/compile/kernel.h"

namespace tessera {

// Takes nodes of several ranks whose request has a communicator.
KernelCandidate communication_candidate(bool host_accessible);

}  // namespace tessera
