// Options that eval and predict share: which finished run, on which data and device.
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
};

void add_run_arguments(CLI::App& command, RunArguments& arguments);

// The arguments as changes to the run's recipe.
std::vector<std::string> overrides_of(const RunArguments& arguments);

}  // namespace tessera::cli
