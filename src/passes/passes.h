// The passes by name, for pipeline.cpp.
#pragma once

#include "tessera/passes/pass.h"

namespace tessera::passes {

// Removes nodes that nothing reads.
bool remove_dead_code(Graph& graph, const PassOptions& options);
// Makes clusters of elementwise operators and at most one reduction (DESIGN, decisions 2 and 5).
bool fuse_elementwise(Graph& graph, const PassOptions& options);

}  // namespace tessera::passes
