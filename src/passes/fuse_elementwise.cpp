// Groups elementwise operators of one iteration shape, and the reductions behind them, into clusters. The
// options say how many reductions over the same axes one cluster may hold, and whether small clusters that
// nothing connects are joined.
//
// A group is grown from its last node towards the first: a node joins the groups of its readers, the nearest
// first. So work that only the backward half needs goes there and is not kept in memory from the forward
// half. Two groups join only where no way leads from one to the other through a node outside, for which the
// groups are kept in a topological order of the contracted graph (after Pearce and Kelly, "A dynamic
// topological sort algorithm for directed acyclic graphs", 2007).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tessera/graph/operator.h"
#include "tessera/passes/decompose.h"
#include "tessera/passes/fuse.h"

#include "passes/clusters.h"
#include "passes/passes.h"

namespace tessera::passes {

bool ends_cluster(const Node& node) {
  return node.schema().traits.reduction != ReductionKind::none;
}

namespace {

// Copied into every cluster that reads it: it costs nothing there.
bool is_free(const Node& node) {
  return node.operator_name() == "broadcast_to" ||
         (node.operator_name() == "constant" && node.attributes().tensor("value").size() == 1);
}

bool is_elementwise(const Node& node) {
  return node.schema().operator_class == OperatorClass::elementwise ||
         (node.schema().traits.joins_clusters && !is_free(node));
}

bool is_composite(const Node& node) {
  return node.schema().decompose && is_elementwise(node);
}

bool decompose_elementwise(Graph& graph) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
      Node* node = (position++)->get();
      if (!is_composite(*node)) continue;
      decompose(graph, node);
      again = changed = true;
    }
  }
  return changed;
}

class Grouping {
 public:
  Grouping(const Graph& graph, const PassOptions& options)
      : most_reductions_(options.reductions_per_cluster) {
    for (const auto& node : graph.nodes()) {
      const size_t group = groups_.size();
      group_of_[node.get()] = group;
      position_.push_back(group);
      order_.push_back(group);
      Group own{.members = {node.get()}};
      if (ends_cluster(*node)) {
        own.shape = &node->input(0)->shape();
        own.reductions = {node.get()};
      } else if (is_elementwise(*node)) {
        own.shape = &node->output()->shape();
      }
      groups_.push_back(std::move(own));
    }
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
      if (is_elementwise(**node)) join_readers(**node);
    }
    if (most_reductions_ > 1) join_reductions_of_one_value(graph);
    if (options.values_per_joined_cluster > 0) {
      join_unconnected(static_cast<size_t>(options.values_per_joined_cluster));
    }
  }

  // The members of each group of elementwise work, in the order of the graph.
  std::vector<std::vector<Node*>> members() const {
    std::vector<std::vector<Node*>> result;
    for (size_t group : order_) {
      if (groups_[group].shape != nullptr && !groups_[group].members.empty()) {
        result.push_back(groups_[group].members);
      }
    }
    return result;
  }

 private:
  struct Group {
    std::vector<Node*> members;
    const SymbolicShape* shape = nullptr;  // of the iteration; null where nothing fuses
    std::vector<const Node*> reductions;
  };

  // What no elementwise node in between has brought together.
  void join_reductions_of_one_value(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (!ends_cluster(*node)) continue;
      for (const Use& use : node->input(0)->uses()) {
        const size_t own = group_of_.at(node.get());
        const size_t other = group_of_.at(use.node);
        if (own == other) continue;
        position_[own] < position_[other] ? join(own, other) : join(other, own);
      }
    }
  }

  // Small groups of one shape, in their order, as long as the values of a joined group stay few.
  void join_unconnected(size_t most_values) {
    std::vector<size_t> open;
    for (const size_t group : std::vector<size_t>(order_)) {
      if (groups_[group].members.empty() || !is_small(groups_[group])) continue;
      const auto joins = [&](size_t earlier) {
        return *groups_[earlier].shape == *groups_[group].shape &&
               count_values(groups_[earlier]) + count_values(groups_[group]) <= most_values &&
               position_[earlier] < position_[group] && join(earlier, group);
      };
      if (std::none_of(open.begin(), open.end(), joins)) open.push_back(group);
    }
  }

  static bool is_small(const Group& group) {
    constexpr int64_t kMostElements = int64_t{1} << 22;
    return group.shape != nullptr && is_static(*group.shape) &&
           tessera::element_count(to_static(*group.shape)) <= kMostElements;
  }

  // What a group reads from outside and makes for outside.
  static size_t count_values(const Group& group) {
    const NodeSet members(group.members.begin(), group.members.end());
    std::unordered_set<const Value*> values;
    for (const Node* node : group.members) {
      for (const Value* input : node->inputs()) {
        if (input->producer() == nullptr || !members.contains(input->producer())) values.insert(input);
      }
      for (const auto& output : node->outputs()) {
        const auto outside = [&](const Use& use) { return !members.contains(use.node); };
        const auto& uses = output->uses();
        if (uses.empty() || std::any_of(uses.begin(), uses.end(), outside)) values.insert(output.get());
      }
    }
    return values.size();
  }

  // Whether one loop can make both groups' reductions.
  bool reduce_alike(const Group& a, const Group& b) const {
    if (a.reductions.empty() || b.reductions.empty()) return true;
    if (a.reductions.size() + b.reductions.size() > static_cast<size_t>(most_reductions_)) return false;
    const Attributes& first = a.reductions[0]->attributes();
    const Attributes& second = b.reductions[0]->attributes();
    return first.integers("axes") == second.integers("axes");
  }

  void join_readers(const Node& node) {
    for (;;) {
      const size_t own = group_of_.at(&node);
      std::vector<size_t> readers;
      for (const auto& output : node.outputs()) {
        for (const Use& use : output->uses()) {
          const size_t reader = group_of_.at(use.node);
          if (reader != own) readers.push_back(reader);
        }
      }
      std::sort(readers.begin(), readers.end(),
                [&](size_t a, size_t b) { return position_[a] < position_[b]; });
      const bool joined =
          std::any_of(readers.begin(), readers.end(), [&](size_t reader) { return join(own, reader); });
      if (!joined) return;
    }
  }

  // Puts the group `later`, which reads `earlier`, into it; false where that is not legal.
  bool join(size_t earlier, size_t later) {
    Group& a = groups_[earlier];
    Group& b = groups_[later];
    if (a.shape == nullptr || b.shape == nullptr || *a.shape != *b.shape) return false;
    if (!reduce_alike(a, b)) return false;
    if (reads_reduction(b, a) || reads_reduction(a, b)) return false;
    if (!reorder(earlier, later)) return false;
    for (Node* node : b.members) group_of_[node] = earlier;
    a.members.insert(a.members.end(), b.members.begin(), b.members.end());
    a.reductions.insert(a.reductions.end(), b.reductions.begin(), b.reductions.end());
    b = {};
    return true;
  }

  static bool reads_reduction(const Group& reader, const Group& maker) {
    return std::any_of(maker.reductions.begin(), maker.reductions.end(), [&](const Node* reduction) {
      const auto& uses = reduction->output()->uses();
      return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
        return std::find(reader.members.begin(), reader.members.end(), use.node) != reader.members.end();
      });
    });
  }

  template <typename Predicate>
  bool reads_any(const Group& group, Predicate&& predicate) const {
    return std::any_of(group.members.begin(), group.members.end(), [&](const Node* node) {
      return std::any_of(node->inputs().begin(), node->inputs().end(), [&](const Value* value) {
        return value->producer() != nullptr && predicate(group_of_.at(value->producer()));
      });
    });
  }

  // Moves what depends on `earlier` behind `later`, so that both can stand in one place; false on a cycle.
  bool reorder(size_t earlier, size_t later) {
    const size_t first = position_[earlier];
    const size_t last = position_[later];
    std::vector<bool> depends(last - first, false);  // by position
    depends[0] = true;
    const auto reached = [&](size_t group) {
      const size_t position = position_[group];
      return position >= first && position < last && depends[position - first];
    };
    std::vector<size_t> before;
    std::vector<size_t> behind;
    for (size_t position = first + 1; position < last; ++position) {
      const size_t group = order_[position];
      const bool moves = reads_any(groups_[group], reached);
      depends[position - first] = moves;
      (moves ? behind : before).push_back(group);
    }
    if (reads_any(groups_[later], [&](size_t group) { return group != earlier && reached(group); }))
      return false;
    size_t position = first;
    const auto place = [&](size_t group) {
      order_[position] = group;
      position_[group] = position++;
    };
    for (size_t group : before) place(group);
    place(earlier);
    place(later);  // empty from now on
    for (size_t group : behind) place(group);
    return true;
  }

  int most_reductions_;
  std::vector<Group> groups_;
  std::unordered_map<const Node*, size_t> group_of_;
  std::vector<size_t> position_;  // of a group in order_
  std::vector<size_t> order_;
};

// Gives the members free nodes of their own, and puts those among the members.
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
      if (producer == nullptr || !is_free(*producer) || set_.contains(producer)) continue;
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

void erase_unread(Graph& graph) {
  for (auto position = graph.nodes().end(); position != graph.nodes().begin();) {
    Node* node = (--position)->get();
    if (!is_free(*node) || graph.is_used(node->output())) continue;
    ++position;
    graph.erase(node);
  }
}

}  // namespace

bool fuse_elementwise(Graph& graph, const PassOptions& options) {
  bool changed = decompose_elementwise(graph);
  for (std::vector<Node*> members : Grouping(graph, options).members()) {
    if ((members.size() < 2 && !reads_broadcast(members)) || visible_values(members).empty()) continue;
    if (!reads_data(members)) continue;
    FreeNodes(graph, members);
    fuse_nodes(graph, "cluster", members, visible_values(members));
    changed = true;
  }
  if (changed) erase_unread(graph);
  return changed;
}

}  // namespace tessera::passes
