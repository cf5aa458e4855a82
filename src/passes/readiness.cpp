#include "tessera/passes/readiness.h"

#include <algorithm>

#include "tessera/graph/operator.h"

namespace tessera {

bool takes_long(const Node& node) {
  switch (node.schema().operator_class) {
    case OperatorClass::source:
    case OperatorClass::elementwise:
    case OperatorClass::reduction:
    case OperatorClass::movement:
      return false;
    case OperatorClass::fused:
      return std::any_of(node.body()->nodes().begin(), node.body()->nodes().end(),
                         [](const auto& member) { return takes_long(*member); });
    default:
      return true;
  }
}

bool is_collective(const Node& node) {
  return node.schema().operator_class == OperatorClass::communication &&
         node.attributes().integer("ranks") > 1;
}

Readiness::Readiness(const Graph& graph) {
  size_t place = 0;
  for (const auto& node : graph.nodes()) {
    ++place;
    of_results_.emplace(node.get(), takes_long(*node) ? place : of_inputs(*node));
  }
}

size_t Readiness::of(const Value& value) const {
  return value.producer() == nullptr ? 0 : of_results_.at(value.producer());
}

size_t Readiness::of_inputs(const Node& node) const {
  size_t last = 0;
  for (const Value* input : node.inputs()) last = std::max(last, of(*input));
  return last;
}

}  // namespace tessera
