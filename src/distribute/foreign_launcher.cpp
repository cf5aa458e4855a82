#include "distribute/foreign_launcher.h"

#include <algorithm>
#include <array>
#include <vector>

#include <unistd.h>

#include "distribute/environment.h"

namespace tessera::distribute {
namespace {

struct ForeignLauncher {
  const char* name;
  const char* ranks;  // how many it started; there only in what it started
  const char* rank;
  const char* of_machine;  // how many ranks this machine has, or how many machines there are
  bool counts_machines;
  std::vector<const char*> job;  // what together tells its jobs apart
};

// Of Slurm the variables of a step: a batch script has those of its job too, and is one process.
const std::array<ForeignLauncher, 2>& foreign_launchers() {
  static const std::array<ForeignLauncher, 2> launchers{
      ForeignLauncher{.name = "mpirun",
                      .ranks = "OMPI_COMM_WORLD_SIZE",
                      .rank = "OMPI_COMM_WORLD_RANK",
                      .of_machine = "OMPI_COMM_WORLD_LOCAL_SIZE",
                      .counts_machines = false,
                      .job = {"PMIX_NAMESPACE"}},
      ForeignLauncher{.name = "srun",
                      .ranks = "SLURM_STEP_NUM_TASKS",
                      .rank = "SLURM_PROCID",
                      .of_machine = "SLURM_STEP_NUM_NODES",
                      .counts_machines = true,
                      .job = {"SLURM_JOB_ID", "SLURM_STEP_ID"}}};
  return launchers;
}

std::string needed(const ForeignLauncher& launcher, const char* name) {
  const std::optional<std::string> value = variable(name);
  require(value.has_value(), ErrorCode::invalid_argument, "the environment has {} of {}, and not {}",
          launcher.ranks, launcher.name, name);
  return *value;
}

// Names become part of a file's: nothing of them may lead elsewhere.
std::string as_file_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !is_digit(c) && !is_letter(c); }, '_');
  return text;
}

// By which this process is one of several ranks; null where it is alone.
const ForeignLauncher* present_launcher() {
  for (const ForeignLauncher& launcher : foreign_launchers()) {
    const std::optional<std::string> ranks = variable(launcher.ranks);
    if (ranks.has_value() && number_of(launcher.ranks, *ranks, parse_integer) != 1) return &launcher;
  }
  return nullptr;
}

}  // namespace

std::string name_of_foreign_launcher() {
  const ForeignLauncher* launcher = variable(kRanksVariable).has_value() ? nullptr : present_launcher();
  return launcher == nullptr ? "" : launcher->name;
}

std::optional<Rendezvous> rendezvous_of_foreign_launcher() {
  const ForeignLauncher* present = present_launcher();
  if (present == nullptr) return std::nullopt;
  const ForeignLauncher& launcher = *present;
  const auto number = [&](const char* name) {
    return number_of(name, needed(launcher, name), parse_integer);
  };
  Rendezvous place{.rank = number(launcher.rank), .ranks = number(launcher.ranks)};
  const bool is_one_machine = number(launcher.of_machine) == (launcher.counts_machines ? 1 : place.ranks);
  place.communicator = variable(kCommunicatorVariable).value_or(is_one_machine ? kLocal : kMpi);
  if (place.communicator != kLocal) return place;
  require(is_one_machine, ErrorCode::unsupported,
          "{} started {} ranks on several machines, and {} is {}, which is for one machine", launcher.name,
          place.ranks, kCommunicatorVariable, kLocal);
  place.address = fmt::format("/dev/shm/tessera-{}-{}", ::getuid(), launcher.name);
  for (const char* part : launcher.job) place.address += "-" + as_file_name(needed(launcher, part));
  return place;
}

}  // namespace tessera::distribute
