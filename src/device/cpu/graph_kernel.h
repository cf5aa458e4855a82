// Kernels that are a small graph of clusters: for operators whose definition is a few reductions and
// elementwise formulas, such as the norms.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

// Appends the node's work to the graph of `inputs`, which stand for the node's own, and returns its outputs.
using GraphRule = std::function<std::vector<Value*>(const Node& node, const std::vector<Value*>& inputs)>;

// Offers "loops.KEY" for an operator: its rule's graph, fused into clusters that run one after the other.
struct GraphRegistration {
  GraphRegistration(const std::string& key, GraphRule rule);
};

}  // namespace tessera::cpu
