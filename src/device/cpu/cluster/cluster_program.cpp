#include "device/cpu/cluster/cluster_program.h"

#include <algorithm>

#include "tessera/graph/operator.h"

#include "device/cpu/cluster/cluster_compiler.h"

namespace tessera::cpu {
namespace {

// Of the first-level cache, what the registers and the memory that streams past them may fill.
constexpr int64_t kCacheBytes = 24 << 10;
constexpr int64_t kSmallestTile = 256;
constexpr int64_t kLargestTile = 2048;

}  // namespace

Program compile_cluster(const Graph& body) {
  // The number of registers decides the size of a tile, which decides what needs registers: twice is enough.
  const Program program = ClusterCompiler(body, kLargestTile / 2).compile();
  int64_t streams = 0;
  for (const Slot& slot : program.slots) {
    streams += slot.kind == Slot::Kind::input || slot.kind == Slot::Kind::output ? slot.bytes : 0;
  }
  const int64_t bytes =
      std::max<int64_t>(program.buffers * program.buffer_bytes / (kLargestTile / 2) + streams, 1);
  const int64_t capacity = std::clamp(kCacheBytes / bytes / 64 * 64, kSmallestTile, kLargestTile);
  return ClusterCompiler(body, capacity).compile();
}

}  // namespace tessera::cpu
