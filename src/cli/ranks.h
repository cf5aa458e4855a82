// Commands that several processes of this machine run together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/distribute/launch.h"

namespace tessera::cli {

// What this process was started with, after the program.
std::vector<std::string> own_arguments();

// What becomes of a run one of whose ranks has died or hung.
struct Restarts {
  int64_t most = 0;        // so often it goes on
  bool all_ranks = false;  // with as many ranks as before; else with those that are left
};

// Runs this program with the arguments as `launch.ranks` ranks. A number of ranks that are left which the run
// refuses, as they cannot share its batch, is passed over for the next lower one. Throws RanksEnded, and
// Interrupted where they were stopped.
void run_on_ranks(distribute::LaunchOptions launch, const std::vector<std::string>& arguments,
                  const Restarts& restarts = {});

}  // namespace tessera::cli
