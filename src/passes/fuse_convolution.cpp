#include "passes/contraction_chain.h"
#include "passes/passes.h"

namespace tessera::passes {

bool fuse_convolution(Graph& graph, const PassOptions&) {
  return fuse_contractions(graph, "convolution");
}

}  // namespace tessera::passes
