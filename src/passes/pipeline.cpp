// Every pass, in the order in which it runs.
#include "tessera/passes/pass.h"

#include "passes/passes.h"

namespace tessera {

std::vector<Pass> pipeline(const PassOptions& options) {
  return {
      {"remove_dead_code", "nodes that nothing reads", passes::remove_dead_code},
      {"fuse_elementwise", "elementwise work and a reduction behind it into clusters",
       passes::fuse_elementwise},
  };
}

}  // namespace tessera
