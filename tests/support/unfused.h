// Graphs as the comparisons need them: without fused nodes, without the rounding of 16-bit types, run node by
// node.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/graph/graph.h"

namespace tessera::testing {

// What a fused node stands for, or the one node alone; inputs and outputs are those of the node, in order.
std::unique_ptr<Graph> unfused(const Node& node);

// The same graph with fp32 wherever it has a 16-bit type, so that only its results are rounded. Null where it
// has none, where an operator does not take fp32 instead, and where it draws random numbers, which are others
// in another type.
std::unique_ptr<Graph> widened(const Graph& graph);

// The outputs by the reference interpreter, whose inputs are cast to the graph's types. `operand` may put
// another tensor in the place of what a node reads.
using OperandOf = std::function<Tensor(const Node& node, size_t index, const Tensor& operand)>;
std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs,
                              const OperandOf& operand = {});

}  // namespace tessera::testing
