#include <set>

#include <fmt/ranges.h>

#include "tessera/base/error.h"

#include "cli/commands.h"
#include "cli/ranks.h"

namespace tessera::cli {
namespace {

struct LaunchArguments {
  Restarts restarts;
  distribute::LaunchOptions launch;
  std::vector<std::string> command;
};

void run_launch(const LaunchArguments& arguments) {
  const std::set<std::string> commands{"bench", "eval", "profile", "train"};
  require(commands.contains(arguments.command.front()), ErrorCode::invalid_argument,
          "'{}' is no command that runs on several ranks (there are: {})", arguments.command.front(),
          fmt::join(commands, ", "));
  run_on_ranks(arguments.launch, arguments.command, arguments.restarts);
}

void add_launch(CLI::App* command) {
  command->footer(
      "All ranks train one network, each on its part of every batch. Examples:\n"
      "  tessera launch --ranks 2 -- train recipes/quickstart.toml --out runs/two\n"
      "Ctrl-C finishes the step, saves, and says how to go on, as for one process; each rank has its log,\n"
      "rank-N.log, in the run's folder.");
  auto arguments = std::make_shared<LaunchArguments>();
  command
      ->add_option("--ranks,--devices", arguments->launch.ranks,
                   "How many processes, each with a GPU of its own where there are enough")
      ->required()
      ->check(CLI::Range(1, 256));
  command
      ->add_option(
          "--restarts", arguments->restarts.most,
          "So often, after a rank died or hung, go on from the last checkpoint with those that are left")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--all-ranks", arguments->restarts.all_ranks, "Restart with as many ranks as before");
  command
      ->add_option("--heartbeat", arguments->launch.heartbeat_seconds,
                   "Seconds without a sign of life after which a rank hangs")
      ->check(CLI::PositiveNumber);
  command->add_option("command", arguments->command, "What each rank runs: -- train RECIPE ...")->required();
  command->callback([arguments] { run_launch(*arguments); });
}

const CommandRegistration kRegistration(
    {.name = "launch",
     .documentation = "Train or measure a network by several processes of this machine",
     .add = add_launch});

}  // namespace
}  // namespace tessera::cli
