// How the work of a compilation grows with the graph.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "support/optimizer_graph.h"

namespace tessera::testing {

// Of this thread, whatever else the machine does.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline double seconds_to_compile(const Graph& graph, const std::shared_ptr<Device>& device,
                                 const CompileOptions& options) {
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const double begin = processor_seconds();
    compile(graph, device, options);
    least = std::min(least, processor_seconds() - begin);
  }
  return least;
}

// For a graph eight times as large the compilation does about eight times the work; were it to grow with the
// square, it would be 64 times. In between there is room for caches that no longer hold all, which about
// double the time, and for a machine that others use.
inline void expect_near_linear_compilation(const std::shared_ptr<Device>& device,
                                           const CompileOptions& options = {}) {
  const auto small = optimizer_graph(100);
  const auto large = optimizer_graph(800);
  const double ratio =
      seconds_to_compile(*large, device, options) / seconds_to_compile(*small, device, options);
  EXPECT_LT(ratio, 32) << small->nodes().size() << " and " << large->nodes().size() << " nodes";
}

}  // namespace tessera::testing
