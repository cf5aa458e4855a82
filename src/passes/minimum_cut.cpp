#include "passes/minimum_cut.h"

#include <algorithm>
#include <limits>

namespace tessera::passes {
namespace {

constexpr size_t kNoEdge = std::numeric_limits<size_t>::max();

}  // namespace

MinimumCut::Vertex MinimumCut::add_vertex() {
  leaving_.emplace_back();
  return leaving_.size() - 1;
}

void MinimumCut::add_edge(Vertex from, Vertex to, int64_t capacity) {
  leaving_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  leaving_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

std::vector<size_t> MinimumCut::shortest_paths() const {
  std::vector<size_t> reached_by(leaving_.size(), kNoEdge);
  std::vector<Vertex> queue{kSource};
  for (size_t next = 0; next < queue.size() && reached_by[kSink] == kNoEdge; ++next) {
    for (size_t edge : leaving_[queue[next]]) {
      const Vertex to = edges_[edge].to;
      if (edges_[edge].capacity == 0 || to == kSource || reached_by[to] != kNoEdge) continue;
      reached_by[to] = edge;
      queue.push_back(to);
    }
  }
  return reached_by;
}

int64_t MinimumCut::solve() {
  int64_t total = 0;
  for (;;) {
    const std::vector<size_t> reached_by = shortest_paths();
    if (reached_by[kSink] == kNoEdge) return total;
    int64_t flow = kUnbounded;
    for (Vertex at = kSink; at != kSource; at = edges_[reached_by[at] ^ 1].to) {
      flow = std::min(flow, edges_[reached_by[at]].capacity);
    }
    for (Vertex at = kSink; at != kSource; at = edges_[reached_by[at] ^ 1].to) {
      edges_[reached_by[at]].capacity -= flow;
      edges_[reached_by[at] ^ 1].capacity += flow;
    }
    total += flow;
  }
}

std::vector<bool> MinimumCut::sink_side() const {
  std::vector<bool> result(leaving_.size(), false);
  result[kSink] = true;
  std::vector<Vertex> waiting{kSink};
  while (!waiting.empty()) {
    const Vertex at = waiting.back();
    waiting.pop_back();
    for (size_t edge : leaving_[at]) {
      const Vertex from = edges_[edge].to;
      if (edges_[edge ^ 1].capacity == 0 || result[from]) continue;
      result[from] = true;
      waiting.push_back(from);
    }
  }
  return result;
}

}  // namespace tessera::passes
