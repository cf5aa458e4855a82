#include "tessera/distribute/registry.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "tessera/base/error.h"

namespace tessera::distribute {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

template <typename Number>
Number number_of(const char* name, const std::string& text) {
  Number value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && rest == text.data() + text.size(), ErrorCode::invalid_argument,
          "the environment's {} is '{}', not a number", name, text);
  return value;
}

}  // namespace

Registry<CommunicatorDescription>& communicators() {
  static Registry<CommunicatorDescription> communicators("communicator");
  return communicators;
}

Rendezvous rendezvous_of_environment() {
  Rendezvous place;
  const std::optional<std::string> ranks = variable(kRanksVariable);
  if (!ranks.has_value()) return place;
  place.ranks = number_of<int64_t>(kRanksVariable, *ranks);
  const std::optional<std::string> rank = variable(kRankVariable);
  require(rank.has_value(), ErrorCode::invalid_argument,
          "the environment says {} ranks, and not which of them this is: {} is missing (tessera launch sets "
          "both)",
          place.ranks, kRankVariable);
  place.rank = number_of<int64_t>(kRankVariable, *rank);
  require(place.ranks > 0 && place.rank >= 0 && place.rank < place.ranks, ErrorCode::invalid_argument,
          "the environment says rank {} of {} ranks", place.rank, place.ranks);
  place.communicator = variable(kCommunicatorVariable).value_or(place.communicator);
  place.address = variable(kAddressVariable).value_or("");
  require(place.ranks == 1 || !place.address.empty(), ErrorCode::invalid_argument,
          "the environment says {} ranks, and not where they meet: {} is missing", place.ranks,
          kAddressVariable);
  if (const auto seconds = variable(kHeartbeatVariable))
    place.heartbeat_seconds = number_of<double>(kHeartbeatVariable, *seconds);
  return place;
}

std::shared_ptr<Communicator> connect_by_environment() {
  const Rendezvous place = rendezvous_of_environment();
  return place.ranks == 1 ? nullptr : communicators().get(place.communicator).connect(place);
}

}  // namespace tessera::distribute
