// What people read of a compiled graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/compile/executable.h"

#include "cli/json.h"

namespace tessera::cli {

struct Explanation {
  const Executable& executable;
  DeviceDescription device;
  std::string fallback;          // why it is no GPU, where that was left to `auto`
  NodeTimes times;               // empty when not asked for
  std::vector<int64_t> batches;  // of the executables in its workspace, itself the first

  bool timed() const { return !times.nodes.empty(); }
  double seconds(size_t node) const { return timed() ? times.nodes[node].seconds() : 0; }
  bool knows_limits() const { return device.bytes_per_second > 0; }
};

// Passes, nodes with their candidates, totals and memory.
nlohmann::json to_json(const Explanation& explained);
void print_text(const Explanation& explained);

}  // namespace tessera::cli
