#include "cli/data_commands.h"

namespace tessera::cli {
namespace {

void add_data(CLI::App* command) {
  command->require_subcommand(1);
  for (const CommandDescription* description : data_commands().all())
    description->add(command->add_subcommand(description->name, description->documentation));
}

const CommandRegistration kRegistration(
    {.name = "data",
     .documentation = "Examine, pack, tokenize, write and time data in files",
     .add = add_data});

}  // namespace

Registry<CommandDescription>& data_commands() {
  static Registry<CommandDescription> commands("command of data");
  return commands;
}

}  // namespace tessera::cli
