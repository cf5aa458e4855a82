// The cheapest way to divide a set in two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::passes {

// A directed graph with capacities whose vertices fall on the side of the source or on that of the sink; each
// edge from the first to the second costs its capacity. Solved as a maximum flow along shortest paths
// (Edmonds and Karp 1972).
class MinimumCut {
 public:
  using Vertex = size_t;
  static constexpr Vertex kSource = 0;
  static constexpr Vertex kSink = 1;
  static constexpr int64_t kUnbounded = int64_t{1} << 60;  // of an edge that must not be cut

  Vertex add_vertex();
  void add_edge(Vertex from, Vertex to, int64_t capacity);

  // The cost of the cheapest division.
  int64_t solve();
  // Of all cheapest divisions, the one with the fewest vertices on the side of the sink. After solve().
  std::vector<bool> sink_side() const;

 private:
  struct Edge {
    Vertex to;
    int64_t capacity;  // what is left; edge i and edge i ^ 1 are each other's reverse
  };

  // The edge by which each vertex is reached from the source along edges with capacity left.
  std::vector<size_t> shortest_paths() const;

  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> leaving_{{}, {}};
};

}  // namespace tessera::passes
