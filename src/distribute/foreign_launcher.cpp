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

}  // namespace

std::optional<Rendezvous> rendezvous_of_foreign_launcher() {
  for (const ForeignLauncher& launcher : foreign_launchers()) {
    const std::optional<std::string> ranks = variable(launcher.ranks);
    if (!ranks.has_value()) continue;
    Rendezvous place{.ranks = number_of(launcher.ranks, *ranks, parse_integer)};
    if (place.ranks == 1) continue;
    place.rank = number_of(launcher.rank, needed(launcher, launcher.rank), parse_integer);
    const auto of_machine =
        number_of(launcher.of_machine, needed(launcher, launcher.of_machine), parse_integer);
    require(of_machine == (launcher.counts_machines ? 1 : place.ranks), ErrorCode::unsupported,
            "{} started {} ranks on several machines; ranks meet on one machine", launcher.name, place.ranks);
    place.address = fmt::format("/dev/shm/tessera-{}-{}", ::getuid(), launcher.name);
    for (const char* part : launcher.job) place.address += "-" + as_file_name(needed(launcher, part));
    return place;
  }
  return std::nullopt;
}

}  // namespace tessera::distribute
