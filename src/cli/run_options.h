// Options that commands of finished runs share: which run, on which data and device, in which precision.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace tessera::cli {

struct RunArguments {
  std::string folder;
  std::string data;
  std::string device;
  std::string precision;
};

void add_run_arguments(CLI::App& command, RunArguments& arguments);
// In which the network computes; what only reads a run has no use for it.
void add_precision(CLI::App& command, RunArguments& arguments);

// The arguments as changes to the run's recipe.
std::vector<std::string> overrides_of(const RunArguments& arguments);

}  // namespace tessera::cli
