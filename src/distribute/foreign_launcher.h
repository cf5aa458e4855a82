// Ranks that another program than `tessera launch` started.
#pragma once

#include <optional>

#include "tessera/distribute/registry.h"

namespace tessera::distribute {

// What mpirun (Open MPI) or srun (Slurm) says of this process in its environment; nothing where neither does,
// or where it is the only rank. Throws Error(invalid_argument) naming the variable that is missing or no
// number, and Error(unsupported) where the ranks are on several machines.
std::optional<Rendezvous> rendezvous_of_foreign_launcher();

}  // namespace tessera::distribute
