// Whether what goes on beside a run has its memory for itself.
#pragma once

#include "compile/lane_plan.h"
#include "compile/storage.h"

namespace tessera {

// Throws Error(internal) naming a step that writes into memory that a step on the lane may still read or
// write, or reads what one may still write.
void verify(const LanePlan& lanes, const Schedule& schedule, const Views& views, const StoragePlan& storage);

}  // namespace tessera
