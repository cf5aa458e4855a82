// The communicator `mpi`, as the library finds it.
#include "tessera/distribute/plugin.h"

#include <tessera/interface_version.h>

#include "mpi/mpi_communicator.h"

namespace tessera::mpi {
namespace {

distribute::CommunicatorDescription describe() {
  return {.name = distribute::kMpi,
          .documentation = "processes of any machines, which mpirun or srun started",
          .connect = [](const distribute::Rendezvous& place) -> std::shared_ptr<Communicator> {
            return std::make_shared<MpiCommunicator>(World::join(place));
          }};
}

}  // namespace
}  // namespace tessera::mpi

extern "C" {
extern tessera::distribute::CommunicatorPlugin tessera_communicator;
tessera::distribute::CommunicatorPlugin tessera_communicator = {TESSERA_INTERFACE_VERSION,
                                                                tessera::mpi::describe};
}
