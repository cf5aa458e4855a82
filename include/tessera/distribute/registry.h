// Communicators by name, and how a process finds the other ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tessera/base/registry.h"
#include "tessera/compile/communicator.h"

namespace tessera::distribute {

// Which rank this process is, and where it meets the others.
struct Rendezvous {
  std::string communicator = "local";
  int64_t rank = 0;
  int64_t ranks = 1;
  std::string address = {};       // what the communicator says it is: of `local` a file
  double heartbeat_seconds = 30;  // a rank that gives no sign of life for so long hangs
};

struct CommunicatorDescription {
  std::string name;
  std::string documentation;  // one line
  // This rank's end of the group of all. Throws Error(invalid_argument) where it does not fit the others,
  // Error(io).
  std::function<std::shared_ptr<Communicator>(const Rendezvous& place)> connect;
};

Registry<CommunicatorDescription>& communicators();

struct CommunicatorRegistration {
  explicit CommunicatorRegistration(CommunicatorDescription description) {
    communicators().add(std::move(description));
  }
};

// What a launcher says in the environment, and reads there.
inline constexpr const char* kRankVariable = "TESSERA_RANK";
inline constexpr const char* kRanksVariable = "TESSERA_RANKS";
inline constexpr const char* kCommunicatorVariable = "TESSERA_COMMUNICATOR";
inline constexpr const char* kAddressVariable = "TESSERA_ADDRESS";
inline constexpr const char* kHeartbeatVariable = "TESSERA_HEARTBEAT_SECONDS";
// "1" where the run goes on after a rank has failed.
inline constexpr const char* kRestartedVariable = "TESSERA_RESTARTED";

// As TESSERA_RANKS and the others say, else as mpirun (Open MPI) or srun (Slurm) does in variables of its
// own; one rank where nobody says. Throws Error(invalid_argument) naming the variable that is missing or no
// number, Error(unsupported) for ranks on several machines.
Rendezvous rendezvous_of_environment();

// This process's end of the group that the environment names; null where it names none. Throws as above and
// as the communicator.
std::shared_ptr<Communicator> connect_by_environment();

}  // namespace tessera::distribute
