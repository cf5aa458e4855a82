#include "tessera/distribute/registry.h"

#include <filesystem>

#include "tessera/base/error.h"

#include "distribute/environment.h"
#include "distribute/foreign_launcher.h"

namespace tessera::distribute {
namespace {

// At the end of a block, however it is left: nobody else knows of the file. None where the path is empty.
struct RemoveFile {
  std::string path;
  ~RemoveFile() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove(path, ignored);
  }
};

}  // namespace

Registry<CommunicatorDescription>& communicators() {
  static Registry<CommunicatorDescription> communicators("communicator");
  return communicators;
}

Rendezvous rendezvous_of_environment() {
  Rendezvous place;
  const std::optional<std::string> ranks = variable(kRanksVariable);
  if (!ranks.has_value()) return rendezvous_of_foreign_launcher().value_or(place);
  place.ranks = number_of(kRanksVariable, *ranks, parse_integer);
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
  require(place.ranks == 1 || !place.address.empty(), ErrorCode::invalid_argument,
          "the environment says {} ranks, and not where they meet: {} is missing", place.ranks,
          kAddressVariable);
  if (const auto seconds = variable(kHeartbeatVariable))
    place.heartbeat_seconds = number_of(kHeartbeatVariable, *seconds, parse_real);
  return place;
}

std::shared_ptr<Communicator> connect_by_environment() {
  const Rendezvous place = rendezvous_of_environment();
  if (place.ranks == 1) return nullptr;
  std::shared_ptr<Communicator> group = communicators().get(place.communicator).connect(place);
  if (variable(kRanksVariable).has_value()) return group;  // whoever chose the file removes it
  // The first rank does when all have opened the file, or one has not come.
  const RemoveFile file{place.rank == 0 ? place.address : ""};
  group->barrier();
  return group;
}

}  // namespace tessera::distribute
