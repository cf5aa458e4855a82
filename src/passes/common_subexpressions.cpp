// Merges nodes that compute the same from the same inputs.
#include <fmt/format.h>

#include "tessera/graph/operator.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

// Text that is equal exactly for nodes that make equal values. Random numbers are functions of their
// attributes and counter, so that they need no exception.
std::string signature(const Node& node) {
  std::string text = print(node);
  text = text.substr(text.find(" = "));  // without the names of what it makes
  // Values are told apart by name; `(%a)` of another graph never meets this one.
  return text;
}

}  // namespace

bool common_subexpressions(Graph& graph, const PassContext&) {
  constexpr int64_t kLargeConstant =
      1024;  // elements: printing them to compare would cost more than it saves
  bool changed = false;
  std::unordered_map<std::string, Node*> known;
  for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
    Node* node = (position++)->get();
    if (node->operator_name() == "constant" && node->attributes().tensor("value").size() > kLargeConstant)
      continue;
    const auto [first, added] = known.emplace(signature(*node), node);
    if (added || first->second->outputs().size() != node->outputs().size()) continue;
    if (first->second->output()->type() != node->output()->type()) continue;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      graph.replace_all_uses(node->output(i), first->second->output(i));
    }
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
