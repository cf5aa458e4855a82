// The passes by name, for pipeline.cpp.
#pragma once

#include "tessera/passes/pass.h"

namespace tessera::passes {

bool remove_dead_code(Graph& graph, const PassOptions& options);
bool fold_constants(Graph& graph, const PassOptions& options);
bool simplify_algebra(Graph& graph, const PassOptions& options);
bool common_subexpressions(Graph& graph, const PassOptions& options);
bool lower_precision(Graph& graph, const PassOptions& options);
// Makes clusters of elementwise operators and at most one reduction (DESIGN, decisions 2 and 5).
bool fuse_elementwise(Graph& graph, const PassOptions& options);

}  // namespace tessera::passes
