// Commands that several processes of this machine run together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/distribute/launch.h"

namespace tessera::cli {

// What this process was started with, after the program.
std::vector<std::string> own_arguments();

// Runs this program with the arguments as `launch.ranks` ranks, and where one dies or hangs, so often again.
// Throws RanksEnded, and Interrupted where they were stopped.
void run_on_ranks(distribute::LaunchOptions launch, const std::vector<std::string>& arguments,
                  int64_t restarts = 0);

}  // namespace tessera::cli
