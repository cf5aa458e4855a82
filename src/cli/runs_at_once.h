// Executables at work at the same time, each from a thread of its own.
#pragma once

#include <cstddef>
#include <vector>

#include "tessera/compile/executable.h"

namespace tessera::cli {

// Executable::trace() of each with what is staged, begun together; in their order. Rethrows what the first
// that failed has thrown, after all have ended.
std::vector<std::vector<RunTimes>> trace_at_once(const std::vector<Executable*>& executables, size_t runs);

// When the work of a run was done: by the device's own timer, where it has one.
TimeSpan work_of(const RunTimes& run);

// The share, from 0 to 1, of the time with work of any of them in which at least two had work: 0 where they
// took turns.
double shared_time(const std::vector<std::vector<RunTimes>>& executables);

}  // namespace tessera::cli
