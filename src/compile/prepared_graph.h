// What an executable can be made of again: see tessera/compile/prepared_graph.h.
#pragma once

#include <functional>

#include "tessera/compile/prepared_graph.h"

#include "compile/compiled_plan.h"

namespace tessera {

// `memory` says where a value lies on the device that is known before the first run; null where nothing has
// run, and the graph stays whole. Throws Error(unsupported) where runs change variables or ranks communicate.
PreparedGraph prepare_graph(const CompiledPlan& plan, Device& device,
                            const std::function<const void*(const Value& settled)>& memory);

}  // namespace tessera
