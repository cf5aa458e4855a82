#include "tessera/distribute/launch.h"

#include <array>
#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"

#include "cli/commands.h"

namespace tessera::cli {
namespace {

struct LaunchArguments {
  int64_t restarts = 0;
  distribute::LaunchOptions launch;
  std::vector<std::string> command;
};

std::string own_program() {
  std::array<char, 4096> path;
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  require(length > 0 && length < std::ssize(path), ErrorCode::io, "this program does not find itself");
  return {path.data(), static_cast<size_t>(length)};
}

void run_launch(LaunchArguments& arguments) {
  const std::set<std::string> commands{"bench", "profile", "train"};
  require(commands.contains(arguments.command.front()), ErrorCode::invalid_argument,
          "'{}' is no command that runs on several ranks (there are: {})", arguments.command.front(),
          fmt::join(commands, ", "));
  arguments.launch.command = {own_program()};
  arguments.launch.command.insert(arguments.launch.command.end(), arguments.command.begin(),
                                  arguments.command.end());
  install_stop_handler();
  arguments.launch.stop = &stop_flag();
  for (int64_t left = arguments.restarts;; --left) {
    const distribute::LaunchResult result = distribute::launch(arguments.launch);
    if (result.failure.empty()) {
      if (result.code != 0) throw Interrupted{};
      return;
    }
    const bool again = left > 0 && result.of_the_machine && !stop_flag().load();
    if (!again) throw RanksEnded{result.code, result.failure};
    log_warning("{}; all ranks begin anew from the last checkpoint", result.failure);
    arguments.launch.restarted = true;
  }
}

void add_launch(CLI::App* command) {
  command->footer(
      "All ranks train one network, each on its part of every batch. Examples:\n"
      "  tessera launch --ranks 2 -- train recipes/quickstart.toml --out runs/two\n"
      "Ctrl-C finishes the step, saves, and says how to go on, as for one process; each rank has its log,\n"
      "rank-N.log, in the run's folder.");
  auto arguments = std::make_shared<LaunchArguments>();
  command->add_option("--ranks", arguments->launch.ranks, "How many processes")
      ->required()
      ->check(CLI::Range(1, 256));
  command
      ->add_option("--restarts", arguments->restarts,
                   "So often, after a rank died or hung, begin anew from the last checkpoint")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--heartbeat", arguments->launch.heartbeat_seconds,
                   "Seconds without a sign of life after which a rank hangs")
      ->check(CLI::PositiveNumber);
  command->add_option("command", arguments->command, "What each rank runs: -- train RECIPE ...")->required();
  command->callback([arguments] { run_launch(*arguments); });
}

const CommandRegistration kRegistration(
    {.name = "launch",
     .documentation = "Train a network by several processes of this machine",
     .add = add_launch});

}  // namespace
}  // namespace tessera::cli
