// The subcommands: each registers itself in its own file; its callback does the work and throws Error.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "tessera/base/error.h"
#include "tessera/base/registry.h"

namespace tessera::cli {

struct CommandDescription {
  std::string name;
  std::string documentation;       // one line
  void (*add)(CLI::App* command);  // its options, footer and callback
};

Registry<CommandDescription>& commands();

struct CommandRegistration {
  explicit CommandRegistration(CommandDescription description) { commands().add(std::move(description)); }
};

// Set by SIGINT, SIGTERM and SIGHUP after install_stop_handler(); a second SIGINT ends the program at once.
// Standard output whose reader went away is from then on an error of writing, no longer the program's end.
const std::atomic<bool>& stop_flag();
void install_stop_handler();

// What the program ends with; docs/command_line.md holds the table.
int exit_code(ErrorCode code);

// Thrown when a run was stopped by a signal after it saved its state: exit code 130.
struct Interrupted {};

// Thrown when a rank failed, with the exit code and what went wrong.
struct RanksEnded {
  int code = 0;
  std::string failure;
};

}  // namespace tessera::cli
