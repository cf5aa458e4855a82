// Ranks that another program than `tessera launch` started.
#pragma once

#include <optional>
#include <string>

#include "tessera/distribute/registry.h"

namespace tessera::distribute {

// What mpirun (Open MPI) or srun (Slurm) says of this process in its environment; nothing where neither does,
// or where it is the only rank. Throws as rendezvous_of_environment() does.
std::optional<Rendezvous> rendezvous_of_foreign_launcher();

// "mpirun" or "srun"; "" where neither has started this process as one of several ranks, or a launcher of
// ours did so in its place.
std::string name_of_foreign_launcher();

}  // namespace tessera::distribute
