// Makes clusters of elementwise operators and the reductions after them: the groups that ElementwiseGroups
// finds, each with its own copies of what costs nothing there.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

#include "passes/clusters.h"
#include "passes/elementwise_groups.h"
#include "passes/passes.h"

namespace tessera::passes {

namespace {

// A cast that loses nothing: what is read before it is half as large.
bool widens(const Node& node) {
  if (node.operator_name() != "cast") return false;
  const DataType from = node.input(0)->data_type();
  const DataType to = node.output()->data_type();
  return is_half(from) && to == DataType::fp32;
}

// Gives the members free nodes of their own, and puts those among the members. Of casts that widen, too, each
// cluster makes its own, which the others then need not store.
class FreeNodes {
 public:
  FreeNodes(Graph& graph, std::vector<Node*>& members)
      : graph_(graph), members_(members), set_(members.begin(), members.end()) {
    for (size_t i = 0; i < members_.size(); ++i) take_inputs(members_[i]);
  }

 private:
  void take_inputs(Node* node) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      Node* producer = node->input(i)->producer();
      if (producer == nullptr || set_.contains(producer)) continue;
      if (widens(*producer)) graph_.set_input(node, i, own_copy(producer)->output());
      if (!is_free(*producer)) continue;
      if (is_read_here_only(producer)) {
        set_.insert(producer);
        members_.push_back(producer);
        continue;
      }
      graph_.set_input(node, i, own_copy(producer)->output());
    }
  }

  bool is_read_here_only(const Node* node) const {
    const auto& uses = node->output()->uses();
    if (std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return !set_.contains(use.node); })) {
      return false;
    }
    return !node->output()->is_output_or_update();
  }

  Node* own_copy(Node* node) {
    const auto known = copies_.find(node);
    if (known != copies_.end()) return known->second;
    const InsertionPoint here(graph_, node);
    Node* copy = graph_.add_node(node->operator_name(), node->inputs(), node->attributes(), node->name());
    copies_[node] = copy;
    set_.insert(copy);
    members_.push_back(copy);
    return copy;
  }

  Graph& graph_;
  std::vector<Node*>& members_;
  NodeSet set_;
  std::unordered_map<const Node*, Node*> copies_;
};

// Whether a cluster of the members has an input: numbers are copied into it, and do not count.
bool reads_data(const std::vector<Node*>& members) {
  NodeSet inside(members.begin(), members.end());
  std::vector<const Node*> waiting(members.begin(), members.end());
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    for (const Value* input : node->inputs()) {
      const Node* producer = input->producer();
      if (producer == nullptr || !(inside.contains(producer) || is_free(*producer))) return true;
      if (inside.insert(producer).second) waiting.push_back(producer);
    }
  }
  return false;
}

bool reads_broadcast(const std::vector<Node*>& members) {
  return std::any_of(members.begin(), members.end(), [](const Node* node) {
    return std::any_of(node->inputs().begin(), node->inputs().end(),
                       [](const Value* value) { return producer_of(value, "broadcast_to") != nullptr; });
  });
}

// Free nodes, and casts of which all readers made their own.
void erase_unread(Graph& graph, std::vector<std::vector<Node*>>& groups) {
  NodeSet erased;
  for (auto position = graph.nodes().end(); position != graph.nodes().begin();) {
    Node* node = (--position)->get();
    if (!(is_free(*node) || widens(*node)) || graph.is_used(node->output())) continue;
    ++position;
    erased.insert(node);
    graph.erase(node);
  }
  for (std::vector<Node*>& members : groups)
    std::erase_if(members, [&](const Node* node) { return erased.contains(node); });
}

}  // namespace

bool fuse_elementwise(Graph& graph, const PassContext& context) {
  std::vector<std::vector<Node*>> groups = ElementwiseGroups(graph, context).members();
  std::erase_if(groups, [](const std::vector<Node*>& members) {
    return (members.size() < 2 && !reads_broadcast(members)) || visible_values(members).empty() ||
           !reads_data(members);
  });
  if (groups.empty()) return false;
  for (std::vector<Node*>& members : groups) FreeNodes(graph, members);
  erase_unread(graph, groups);
  for (const std::vector<Node*>& members : groups) {
    // None where others read nothing of it but a cast.
    const std::vector<Value*> visible = visible_values(members);
    if (!visible.empty()) fuse_nodes(graph, kClusterKind, members, visible);
  }
  return true;
}

}  // namespace tessera::passes
