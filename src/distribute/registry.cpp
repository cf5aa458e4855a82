#include "tessera/distribute/registry.h"

#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/compile/device.h"
#include "tessera/compile/plugin.h"
#include "tessera/distribute/plugin.h"

#include "distribute/environment.h"
#include "distribute/foreign_launcher.h"

namespace tessera::distribute {

Registry<CommunicatorDescription>& communicators() {
  static Registry<CommunicatorDescription> communicators("communicator");
  return communicators;
}

namespace {

// At the end of a block, however it is left: nobody else knows of the file. None where the path is empty.
struct RemoveFile {
  std::string path;
  ~RemoveFile() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove(path, ignored);
  }
};

Rendezvous rendezvous_of_ours(const std::string& ranks) {
  Rendezvous place{.ranks = number_of(kRanksVariable, ranks, parse_integer)};
  const std::optional<std::string> rank = variable(kRankVariable);
  require(rank.has_value(), ErrorCode::invalid_argument,
          "the environment says {} ranks, and not which of them this is: {} is missing (tessera launch sets "
          "both)",
          place.ranks, kRankVariable);
  place.rank = number_of(kRankVariable, *rank, parse_integer);
  require(place.ranks > 0 && place.rank >= 0 && place.rank < place.ranks, ErrorCode::invalid_argument,
          "the environment says rank {} of {} ranks", place.rank, place.ranks);
  place.communicator = variable(kCommunicatorVariable).value_or(place.communicator);
  place.address = variable(kAddressVariable).value_or("");
  return place;
}

}  // namespace

const CommunicatorDescription& find_communicator(const std::string& name) {
  if (const CommunicatorDescription* known = communicators().find(name)) return *known;
  if (name == kMpi && !std::filesystem::exists(plugin_path(name)))
    fail(ErrorCode::unsupported,
         "communicator '{}' needs {}, which is not there: it is built where Open MPI is found (Debian's "
         "libopenmpi-dev; cmake -DTESSERA_ENABLE_MPI=ON says what is missing)",
         name, plugin_path(name).string());
  if (name == kMpi || Device::has_plugin(name)) {
    const auto& plugin = load_plugin<CommunicatorPlugin>({.asker = fmt::format("communicator '{}'", name),
                                                          .name = name,
                                                          .kind = "communicator",
                                                          .entry = kCommunicatorEntry});
    const CommunicatorRegistration registration(plugin.create());
  }
  return communicators().get(name);
}

bool is_restarted() {
  const std::optional<std::string> requeued = variable("SLURM_RESTART_COUNT");
  return variable(kRestartedVariable) == "1" || (requeued.has_value() && requeued != "0");
}

std::string program_on_ranks(int64_t ranks) {
  if (ranks == 1) return "tessera";
  const std::string foreign = name_of_foreign_launcher();
  return foreign.empty() ? fmt::format("tessera launch --ranks {} --", ranks)
                         : fmt::format("{} -n {} tessera", foreign, ranks);
}

Rendezvous rendezvous_of_environment() {
  const std::optional<std::string> ranks = variable(kRanksVariable);
  Rendezvous place = ranks.has_value() ? rendezvous_of_ours(*ranks)
                                       : rendezvous_of_foreign_launcher().value_or(Rendezvous{});
  if (const auto seconds = variable(kHeartbeatVariable))
    place.heartbeat_seconds = number_of(kHeartbeatVariable, *seconds, parse_real);
  return place;
}

std::shared_ptr<Communicator> connect_by_environment() {
  const Rendezvous place = rendezvous_of_environment();
  if (place.ranks == 1) return nullptr;
  std::shared_ptr<Communicator> group = find_communicator(place.communicator).connect(place);
  if (variable(kRanksVariable).has_value()) return group;  // whoever chose the file removes it
  // The first rank does when all have opened the file, or one has not come.
  const RemoveFile file{place.rank == 0 ? place.address : ""};
  group->barrier();
  return group;
}

}  // namespace tessera::distribute
