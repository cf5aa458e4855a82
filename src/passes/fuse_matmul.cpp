#include "passes/contraction_chain.h"
#include "passes/passes.h"

namespace tessera::passes {

bool fuse_matmul(Graph& graph, const PassOptions&) {
  return fuse_contractions(graph, "matmul");
}

}  // namespace tessera::passes
