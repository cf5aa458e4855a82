// The subcommands of `tessera data`: each registers itself in its own file.
#pragma once

#include <utility>

#include "cli/commands.h"

namespace tessera::cli {

Registry<CommandDescription>& data_commands();

struct DataCommandRegistration {
  explicit DataCommandRegistration(CommandDescription description) {
    data_commands().add(std::move(description));
  }
};

}  // namespace tessera::cli
