// Puts clusters that do not depend on each other into one node, where a launch costs more than the work of
// many of them: those that only the end of the step needs, such as the norms and updates of all weights, and
// those that need only its start, such as the casts of weights. Whatever lies between stays where it is; to
// wait for another branch there would keep more alive, and hold up what reads it. But what one collective of
// several ranks waits for, and nobody else, may wait as well: the scaling of all gradients of a bucket.
//
// Nodes of one group have the same depth, so that none depends on another, and neither does a group on one
// that depends on it: at the start of a step it is the number of groupable nodes on the longest way to them,
// at its end of those on the longest way from them. All updates that nothing reads are then one launch,
// however far each is from the start, and whether or not the norms of trust ratios stand before it. Settled
// values are computed once: they stay out of groups, which would compute them in every run. So does what
// reads images: there is little of that, and recompute_activations has put it where it is read. And so does
// what nothing reads.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/readiness.h"
#include "tessera/passes/settled_values.h"

#include "passes/clusters.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

int64_t elements_of(const Value* value) {
  return value->type().element_count();
}

bool reduces_everything(const Node& node) {
  return ends_cluster(node) && elements_of(node.output()) == 1;
}

// Walks through all its tensors, but for single numbers, from the first element to the last.
bool is_flat(const Node& node) {
  int64_t most = 1;
  const auto meet = [&](const Value* value) {
    if (!value->type().is_static()) return false;
    most = std::max(most, elements_of(value));
    return true;
  };
  const auto& inputs = node.inputs();
  const auto& outputs = node.outputs();
  if (!std::all_of(inputs.begin(), inputs.end(), meet)) return false;
  if (!std::all_of(outputs.begin(), outputs.end(), [&](const auto& output) { return meet(output.get()); }))
    return false;
  const auto fits = [&](const Value* value) { return elements_of(value) == 1 || elements_of(value) == most; };
  return std::all_of(inputs.begin(), inputs.end(), fits) &&
         std::all_of(outputs.begin(), outputs.end(), [&](const auto& output) { return fits(output.get()); });
}

bool is_primitive(const Node& node) {
  return (node.schema().operator_class == OperatorClass::elementwise && node.schema().scalar) ||
         reduces_everything(node);
}

bool reads_whole_input(const Node& node) {
  const auto& inputs = node.inputs();
  return std::any_of(inputs.begin(), inputs.end(), [](const Value* value) {
    return value->producer() == nullptr && value->role() == InputRole::input && elements_of(value) > 1;
  });
}

bool is_groupable(const Node& node, const PassTarget& target) {
  if (!is_flat(node) || reads_whole_input(node)) return false;
  if (node.operator_name() != "fused") return is_primitive(node) && is_taken(node, target);
  if (node.attributes().text("kind") != kClusterKind) return false;
  const auto& members = node.body()->nodes();
  return std::all_of(members.begin(), members.end(), [](const auto& member) {
    return member->operator_name() == "constant" || member->operator_name() == "broadcast_to" ||
           is_primitive(*member);
  });
}

class Groups {
 public:
  Groups(const Graph& graph, const PassContext& context)
      : settled_(settled_values(graph, context.options.frozen)) {
    for (const auto& node : graph.nodes()) {
      if (settled_.contains(node->output()) || !is_read(*node)) continue;
      if (is_groupable(*node, context.target)) groupable_.insert(node.get());
    }
    find_ancestors(graph);
    find_descendants(graph);
    find_feeding(graph);
  }

  // In the order of the graph.
  std::vector<std::vector<Node*>> members(const Graph& graph, int64_t most_values) const {
    std::map<Key, std::vector<std::vector<Node*>>> groups;
    std::map<Key, int64_t> values;  // of the last one
    for (const auto& node : graph.nodes()) {
      const std::optional<Key> found = key_of(*node);
      if (!found.has_value()) continue;
      const Key& key = *found;
      const auto own = static_cast<int64_t>(node->inputs().size() + node->outputs().size());
      if (groups[key].empty() || values[key] + own > most_values) {
        groups[key].emplace_back();
        values[key] = 0;
      }
      groups[key].back().push_back(node.get());
      values[key] += own;
    }
    std::vector<std::vector<Node*>> result;
    for (auto& [key, own] : groups) {
      for (std::vector<Node*>& group : own) {
        if (group.size() > 1) result.push_back(std::move(group));
      }
    }
    return result;
  }

 private:
  enum class Part : uint8_t { start, before_collective, end };

  // What the nodes of one group have in common.
  struct Key {
    Part part = Part::start;
    size_t collective = 0;  // in the order of the graph
    int place = 0;          // the farthest from the end, or from the collective, come first

    bool operator<(const Key& other) const {
      return std::tie(part, collective, place) < std::tie(other.part, other.collective, other.place);
    }
  };

  // None for a node that stays where it is.
  std::optional<Key> key_of(const Node& node) const {
    if (!groupable_.contains(&node)) return std::nullopt;
    if (!needs_more_.contains(&node)) return Key{Part::start, 0, depth_.at(&node)};
    if (is_last(node)) return Key{Part::end, 0, -height_.at(&node)};
    const auto feeding = feeding_.find(&node);
    if (feeding == feeding_.end()) return std::nullopt;
    return Key{Part::before_collective, feeding->second.collective, -feeding->second.distance};
  }

  // The collective to which all that reads a node's results leads.
  struct Feeding {
    size_t collective = 0;
    int distance = 0;  // groupable nodes on the longest way, itself among them
  };

  void find_feeding(const Graph& graph) {
    size_t place = graph.nodes().size();
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
      --place;
      if (is_collective(**node)) {
        feeding_[node->get()] = {place, 0};
      } else if (groupable_.contains(node->get())) {
        if (const std::optional<Feeding> found = feeding_of(**node)) feeding_[node->get()] = *found;
      }
    }
  }

  std::optional<Feeding> feeding_of(const Node& node) const {
    std::optional<Feeding> result;
    for (const auto& output : node.outputs()) {
      if (output->is_output_or_update()) return std::nullopt;
      for (const Use& use : output->uses()) {
        const auto reader = feeding_.find(use.node);
        if (reader == feeding_.end()) return std::nullopt;
        const Feeding& read_by = reader->second;
        if (!result.has_value()) result = Feeding{read_by.collective, 0};
        if (result->collective != read_by.collective) return std::nullopt;
        result->distance = std::max(result->distance, read_by.distance + 1);
      }
    }
    return result;
  }

  void find_ancestors(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      const bool groupable = groupable_.contains(node.get());
      int depth = groupable ? 1 : 0;
      for (const Value* input : node->inputs()) {
        const Node* producer = input->producer();
        if (producer == nullptr || settled_.contains(input)) continue;
        depth = std::max(depth, depth_.at(producer) + (groupable ? 1 : 0));
        if (!groupable_.contains(producer) || needs_more_.contains(producer)) needs_more_.insert(node.get());
      }
      depth_[node.get()] = depth;
    }
  }

  void find_descendants(const Graph& graph) {
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
      int height = 0;
      for (const auto& output : (*node)->outputs()) {
        for (const Use& use : output->uses()) {
          const bool groupable = groupable_.contains(use.node);
          if (!groupable || serves_more_.contains(use.node)) serves_more_.insert(node->get());
          height = std::max(height, height_.at(use.node) + (groupable ? 1 : 0));
        }
      }
      height_[node->get()] = height;
    }
  }

  bool is_last(const Node& node) const { return !serves_more_.contains(&node); }

  const std::unordered_set<const Value*> settled_;
  NodeSet groupable_;
  NodeSet needs_more_;   // what a node that is not groupable leads to
  NodeSet serves_more_;  // what leads to such a node
  std::unordered_map<const Node*, int>
      depth_;  // groupable nodes on the longest way to a node, itself among them
  std::unordered_map<const Node*, int> height_;       // those on the longest way from it
  std::unordered_map<const Node*, Feeding> feeding_;  // of collectives, and of groupable nodes
};

// The members of a group are clusters: constants are in their bodies.
Node* as_cluster(Graph& graph, Node* node) {
  if (node->operator_name() == "fused") return node;
  return fuse_nodes(graph, kClusterKind, {node}, visible_values({node}));
}

}  // namespace

bool group_clusters(Graph& graph, const PassContext& context) {
  if (context.target.values_per_group == 0) return false;
  const std::vector<std::vector<Node*>> groups =
      Groups(graph, context).members(graph, context.target.values_per_group);
  for (std::vector<Node*> members : groups) {
    for (Node*& node : members) node = as_cluster(graph, node);
    fuse_nodes(graph, kClustersKind, members, visible_values(members));
  }
  return !groups.empty();
}

}  // namespace tessera::passes
