// Graphs made at random from a seed: small shapes, operators of every class, a loss, its gradients, updates.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera::testing {

struct RandomGraph {
  std::unique_ptr<Graph> graph;
  std::map<std::string, Tensor> values;  // of every input of the graph, parameters and states included
};

// The same seed gives the same graph and values. All values of the forward half are finite and moderate; the
// gradients are what they are.
RandomGraph random_graph(uint64_t seed);

}  // namespace tessera::testing
