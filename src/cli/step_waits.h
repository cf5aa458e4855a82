// Where the time between the steps of a training goes that a loader feeds.
#pragma once

#include <string>
#include <vector>

#include "tessera/compile/executable.h"

namespace tessera::cli {

// In seconds, the mean of a step.
struct StepWaits {
  double pace = 0;  // from the end of one step's work to that of the next: the sum of the others but reading
  double work = 0;  // of the device
  double reading = 0;  // the host waited for a batch
  // The device had nothing to do, because the host had not given it the step yet; because the step's inputs
  // were not there, which are sent, or decoded by the device, beside the step ahead of it.
  double host = 0;
  double inputs = 0;
};

// Of the later half of the runs: those before may take batches that were made while nothing ran. At least
// four.
StepWaits waits_of(const std::vector<RunTimes>& runs);

// "a step every 34.70 ms, of which the device works 28.10 ms, ..."
std::string describe(const StepWaits& waits);

}  // namespace tessera::cli
