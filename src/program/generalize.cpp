#include "program/generalize.h"

#include "tessera/base/error.h"

namespace tessera::program {
namespace {

[[noreturn]] void refuse(const Node& node, const std::string& what) {
  fail(ErrorCode::unsupported, "node '{}' ({}): {} depends on how large the batch is", node.name(),
       node.operator_name(), what);
}

// Of nodes that stand at the same place in both graphs.
class Generalizer {
 public:
  Generalizer(const OpenExtent& open, Graph& target, ValueMapping& mapping)
      : open_(open), target_(target), mapping_(mapping) {}

  void pair(const Value* first, const Value* second) { partners_[second] = first; }

  void copy(const Node& first, const Node& second) {
    if (first.operator_name() != second.operator_name() || first.inputs().size() != second.inputs().size())
      refuse(first, "what is computed");
    std::vector<Value*> inputs;
    for (size_t i = 0; i < first.inputs().size(); ++i) {
      if (partners_.at(second.inputs()[i]) != first.inputs()[i]) refuse(first, "what it reads");
      inputs.push_back(mapping_.at(first.inputs()[i]));
    }
    require(first.bodies().empty(), ErrorCode::internal, "node '{}' has a body", first.name());
    Node* copy = target_.add_node(first.operator_name(), first.operands(inputs), attributes(first, second),
                                  first.name());
    for (size_t i = 0; i < first.outputs().size(); ++i) {
      mapping_[first.output(i)] = copy->output(i);
      pair(first.output(i), second.output(i));
    }
  }

 private:
  Attributes attributes(const Node& first, const Node& second) const {
    Attributes result = first.attributes();
    for (const auto& [name, attribute] : first.attributes().entries()) {
      if (attribute == second.attributes().at(name)) continue;
      if (attribute.kind() != AttributeKind::shape) refuse(first, "'" + name + "'");
      result.set(name, shape(first, first.attributes().shape(name), second.attributes().shape(name)));
    }
    return result;
  }

  SymbolicShape shape(const Node& node, SymbolicShape first, const SymbolicShape& second) const {
    if (first.size() != second.size()) refuse(node, "how many axes there are");
    for (size_t axis = 0; axis < first.size(); ++axis) {
      if (first[axis] == second[axis]) continue;
      const int64_t growth = second[axis].value() - first[axis].value();
      const int64_t steps = open_.second - open_.first;
      if (growth % steps != 0) refuse(node, "an extent, otherwise than by a multiple of it,");
      const int64_t slope = growth / steps;
      first[axis] = open_.extent * Dimension(slope) + Dimension(first[axis].value() - slope * open_.first);
    }
    return first;
  }

  const OpenExtent& open_;
  Graph& target_;
  ValueMapping& mapping_;
  std::unordered_map<const Value*, const Value*> partners_;  // of the second graph -> of the first
};

}  // namespace

void copy_generalized(const Graph& first, const Graph& second, const OpenExtent& open, Graph& target,
                      ValueMapping& mapping) {
  require(first.inputs().size() == second.inputs().size() && first.nodes().size() == second.nodes().size(),
          ErrorCode::unsupported, "'{}': what is computed depends on how large the batch is", first.name());
  Generalizer generalizer(open, target, mapping);
  for (size_t i = 0; i < first.inputs().size(); ++i)
    generalizer.pair(first.inputs()[i].get(), second.inputs()[i].get());
  for (auto a = first.nodes().begin(), b = second.nodes().begin(); a != first.nodes().end(); ++a, ++b)
    generalizer.copy(**a, **b);
}

}  // namespace tessera::program
