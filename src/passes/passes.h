// The passes by name, for pipeline.cpp.
#pragma once

#include "tessera/passes/pass.h"

namespace tessera::passes {

// Removes nodes that nothing reads.
bool remove_dead_code(Graph& graph, const PassOptions& options);

}  // namespace tessera::passes
