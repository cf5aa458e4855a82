// Communicators by name, and how a process finds the other ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tessera/base/registry.h"
#include "tessera/compile/communicator.h"

namespace tessera::distribute {

inline constexpr const char* kLocal = "local";  // ranks of one machine, over memory that they share
inline constexpr const char* kMpi = "mpi";      // ranks of any machines; a plug-in

// Which rank this process is, and where it meets the others.
struct Rendezvous {
  std::string communicator = kLocal;
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

// Those that are part of the program or were loaded.
Registry<CommunicatorDescription>& communicators();
// That of the name, which is loaded where it is a plug-in. Throws Error(invalid_argument) where there is no
// such communicator, Error(unsupported) where its library is missing or does not fit, saying what to do.
const CommunicatorDescription& find_communicator(const std::string& name);

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
// The rank's place on its machine, where that is not its place among those that run there: a launcher that
// goes on without a rank leaves that one's GPU alone.
inline constexpr const char* kPlaceVariable = "TESSERA_PLACE";
// "1" where the run goes on after a rank has failed.
inline constexpr const char* kRestartedVariable = "TESSERA_RESTARTED";

// Whether TESSERA_RESTARTED says so, or Slurm that it has begun the job anew.
bool is_restarted();

// This program as the present launcher starts it on so many ranks: "mpirun -n 2 tessera".
std::string program_on_ranks(int64_t ranks);

// As TESSERA_RANKS and the others say, else as mpirun (Open MPI) or srun (Slurm) does in variables of its
// own; one rank where nobody says. Ranks on one machine meet by `local` and those on several by `mpi`, unless
// TESSERA_COMMUNICATOR names another. Throws Error(invalid_argument) naming the variable that is missing or
// no number, Error(unsupported) for ranks on several machines and a communicator of one.
Rendezvous rendezvous_of_environment();

// This process's end of the group that the environment names; null where it names none. Throws as above and
// as the communicator.
std::shared_ptr<Communicator> connect_by_environment();

}  // namespace tessera::distribute
