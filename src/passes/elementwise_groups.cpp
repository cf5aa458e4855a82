#include "passes/elementwise_groups.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "tessera/base/order_labels.h"
#include "tessera/graph/operator.h"

#include "passes/clusters.h"

namespace tessera::passes {

bool ends_cluster(const Node& node) {
  return node.schema().traits.reduction != ReductionKind::none;
}

bool is_free(const Node& node) {
  return node.operator_name() == "broadcast_to" ||
         (node.operator_name() == "constant" && node.attributes().tensor("value").size() == 1);
}

namespace {

// A cluster has a copy of its own.
bool is_number(const Value& value) {
  return value.producer() != nullptr && value.producer()->operator_name() == "constant" &&
         is_free(*value.producer());
}

const Tensor& number_of(const Value& value) {
  return value.producer()->attributes().tensor("value");
}

using Originals = std::unordered_map<const Value*, const Value*>;

// A node that has made the same before, of values or of their originals; null where there is none.
const Node* original_of(const Node& node, const Originals& originals) {
  // Of what reads a number that a whole step shares none is recomputed.
  constexpr size_t kMostReaders = 64;
  const auto original = [&](const Value* value) {
    const auto found = originals.find(value);
    return found == originals.end() ? value : found->second;
  };
  const auto is_same = [&](const Value* own, const Value* other) {
    return original(own) == other ||
           (is_number(*own) && is_number(*other) && number_of(*own).identical(number_of(*other)));
  };
  const auto read =
      std::ranges::find_if(node.inputs(), [](const Value* input) { return !is_number(*input); });
  if (read == node.inputs().end() || original(*read)->uses().size() > kMostReaders) return nullptr;
  for (const Use& use : original(*read)->uses()) {
    const Node& other = *use.node;
    if (other.operator_name() == node.operator_name() && other.attributes() == node.attributes() &&
        std::ranges::equal(node.inputs(), other.inputs(), is_same) && other.stands_before(node))
      return &other;
  }
  return nullptr;
}

bool is_cast(const Node& node) {
  return node.operator_name() == "cast";
}

// Who reads it, or a cast of it: each cluster has casts of its own.
std::vector<const Node*> readers_beside(const Value& value) {
  std::vector<const Node*> readers;
  for (const Use& use : value.uses()) {
    readers.push_back(use.node);
    if (!is_cast(*use.node)) continue;
    for (const Use& of_cast : use.node->output()->uses()) readers.push_back(of_cast.node);
  }
  return readers;
}

}  // namespace

bool is_elementwise(const Node& node) {
  return node.schema().operator_class == OperatorClass::elementwise ||
         (node.schema().traits.joins_clusters && !is_free(node));
}

bool is_taken(const Node& node, const PassTarget& target) {
  const auto is_computed = [](const Value* value) { return kComputedTypes.contains(value->data_type()); };
  const bool common = std::all_of(node.inputs().begin(), node.inputs().end(), is_computed) &&
                      std::all_of(node.outputs().begin(), node.outputs().end(),
                                  [&](const auto& output) { return is_computed(output.get()); });
  return common || (target.clusters_take && target.clusters_take(node));
}

ElementwiseGroups::ElementwiseGroups(const Graph& graph, const PassContext& context)
    : most_reductions_(static_cast<size_t>(context.target.reductions_per_cluster)) {
  for (const auto& node : graph.nodes()) {
    const Index index = nodes_.size();
    nodes_.push_back(node.get());
    index_of_.emplace(node.get(), index);
    next_.push_back(kNone);
    parent_.push_back(index);
    Group own{.last = index};
    for (const Value* input : node->inputs()) own.reads += is_number(*input) ? 0 : 1;
    if (ends_cluster(*node)) {
      own.shape = &node->input(0)->shape();
      own.reductions = {node.get()};
    } else if (is_elementwise(*node) && is_taken(*node, context.target)) {
      own.shape = &node->output()->shape();
    }
    own.position = order_.insert(order_.end(), index);
    groups_.push_back(std::move(own));
  }
  label_inserted(order_, order_.begin(), order_.end(),
                 [this](Index group) -> int64_t& { return groups_[group].label; });
  for (const Node* node : nodes_) {
    readers_.emplace_back();
    for (const auto& output : node->outputs()) {
      for (const Use& use : output->uses()) readers_.back().push_back(index_of_.at(use.node));
    }
  }
  for (Index node = nodes_.size(); node-- > 0;) {
    if (is_elementwise(*nodes_[node]) && is_taken(*nodes_[node], context.target)) join_readers(node);
  }
  join_copies();
  if (most_reductions_ > 1) join_reductions_of_one_value(graph);
  if (context.target.values_per_joined_cluster > 0)
    join_unconnected(static_cast<size_t>(context.target.values_per_joined_cluster));
}

std::vector<std::vector<Node*>> ElementwiseGroups::members() const {
  std::vector<std::vector<Node*>> result;
  for (Index group : order_) {
    if (groups_[group].shape == nullptr) continue;
    result.emplace_back();
    for_each_member(group, [&](Index member) { result.back().push_back(nodes_[member]); });
  }
  return result;
}

ElementwiseGroups::Index ElementwiseGroups::group_of(Index node) const {
  Index group = node;
  while (parent_[group] != group) group = parent_[group] = parent_[parent_[group]];
  return group;
}

template <typename Use>
void ElementwiseGroups::for_each_member(Index group, Use&& use) const {
  for (Index member = group; member != kNone; member = next_[member]) use(member);
}

// What no elementwise node in between has brought together.
void ElementwiseGroups::join_reductions_of_one_value(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (!ends_cluster(*node)) continue;
    for (const Use& use : node->input(0)->uses()) {
      const Index own = group_of(node.get());
      const Index other = group_of(use.node);
      if (own == other) continue;
      stands_before(own, other) ? join(own, other) : join(other, own);
    }
  }
}

// What recompute_activations makes once more for the backward half: beside the last group that reads the same
// it costs no more than to write it.
void ElementwiseGroups::join_copies() {
  for (const Index group : std::vector<Index>(order_.begin(), order_.end())) {
    if (groups_[group].joined || groups_[group].shape == nullptr || !groups_[group].reductions.empty() ||
        !is_recomputed(group))
      continue;
    const std::unordered_set<const Value*> read = read_by(group);
    Index last = kNone;
    for (const Node* reader : readers_beside(**read.begin())) {
      const Index other = group_of(index_of_.at(reader));
      if (other == group || groups_[other].shape == nullptr || !stands_before(group, other)) continue;
      const std::unordered_set<const Value*> others = read_by(other);
      const bool reads_all = std::ranges::all_of(read, [&](const Value* value) {
        return others.contains(value) || std::ranges::any_of(value->uses(), [&](const Use& use) {
                 return is_cast(*use.node) && others.contains(use.node->output());
               });
      });
      if (reads_all && (last == kNone || stands_before(last, other))) last = other;
    }
    if (last != kNone) join(group, last);
  }
}

std::vector<ElementwiseGroups::Index> ElementwiseGroups::members_of(Index group) const {
  std::vector<Index> members;
  for_each_member(group, [&](Index member) { members.push_back(member); });
  std::ranges::sort(members);
  return members;
}

bool ElementwiseGroups::is_recomputed(Index group) const {
  Originals originals;
  for (const Index member : members_of(group)) {
    const Node& node = *nodes_[member];
    const Node* original = original_of(node, originals);
    if (original == nullptr) return false;
    for (size_t i = 0; i < node.outputs().size(); ++i) originals[node.output(i)] = original->output(i);
  }
  return true;
}

// From outside, but for numbers.
std::unordered_set<const Value*> ElementwiseGroups::read_by(Index group) const {
  std::unordered_set<const Value*> values;
  for_each_member(group, [&](Index member) {
    for (const Value* input : nodes_[member]->inputs()) {
      const bool is_own = input->producer() != nullptr && group_of(input->producer()) == group;
      if (!is_own && !is_number(*input)) values.insert(input);
    }
  });
  return values;
}

// Small groups of one shape, in their order, as long as the values of a joined group stay few.
void ElementwiseGroups::join_unconnected(size_t most_values) {
  struct Open {
    Index group;
    size_t values;
  };
  std::map<std::string, std::vector<Open>> open;  // by shape
  for (const Index group : std::vector<Index>(order_.begin(), order_.end())) {
    if (groups_[group].joined || !is_small(group)) continue;
    const size_t values = count_values(group);
    std::vector<Open>& alike = open[to_string(*groups_[group].shape)];
    const auto joins = [&](Open& earlier) {
      if (earlier.values + values > most_values || !stands_before(earlier.group, group) ||
          !join(earlier.group, group))
        return false;
      earlier.values = count_values(earlier.group);
      return true;
    };
    if (std::none_of(alike.begin(), alike.end(), joins)) alike.push_back({group, values});
  }
}

bool ElementwiseGroups::is_small(Index group) const {
  constexpr int64_t kMostElements = int64_t{1} << 22;
  const SymbolicShape* shape = groups_[group].shape;
  return shape != nullptr && is_static(*shape) && tessera::element_count(to_static(*shape)) <= kMostElements;
}

// What a group reads from outside and makes for outside.
size_t ElementwiseGroups::count_values(Index group) const {
  std::unordered_set<const Value*> values;
  for_each_member(group, [&](Index member) {
    for (const Value* input : nodes_[member]->inputs()) {
      if (input->producer() == nullptr || group_of(input->producer()) != group) values.insert(input);
    }
    for (const auto& output : nodes_[member]->outputs()) {
      const auto outside = [&](const Use& use) { return group_of(use.node) != group; };
      const auto& uses = output->uses();
      if (uses.empty() || std::any_of(uses.begin(), uses.end(), outside)) values.insert(output.get());
    }
  });
  return values.size();
}

// How often members of one read values of the other.
size_t ElementwiseGroups::reads_between(Index a, Index b) const {
  if (groups_[a].members > groups_[b].members) std::swap(a, b);
  size_t count = 0;
  for_each_member(a, [&](Index member) {
    for (const Value* input : nodes_[member]->inputs())
      count += input->producer() != nullptr && group_of(input->producer()) == b ? 1 : 0;
    count += static_cast<size_t>(std::count_if(readers_[member].begin(), readers_[member].end(),
                                               [&](Index reader) { return group_of(reader) == b; }));
  });
  return count;
}

// Whether one loop can make both groups' reductions.
bool ElementwiseGroups::reduce_alike(const Group& a, const Group& b) const {
  if (a.reductions.empty() || b.reductions.empty()) return true;
  if (a.reductions.size() + b.reductions.size() > most_reductions_) return false;
  const Attributes& first = a.reductions[0]->attributes();
  const Attributes& second = b.reductions[0]->attributes();
  return first.integers("axes") == second.integers("axes");
}

void ElementwiseGroups::join_readers(Index node) {
  for (;;) {
    const Index own = group_of(node);
    std::vector<Index> readers;
    for (Index reader : readers_[node]) {
      if (group_of(reader) != own) readers.push_back(group_of(reader));
    }
    std::sort(readers.begin(), readers.end(), [&](Index a, Index b) { return stands_before(a, b); });
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    const bool joined =
        std::any_of(readers.begin(), readers.end(), [&](Index reader) { return join(own, reader); });
    if (!joined) return;
  }
}

// Puts the group `later`, which no way leads from to `earlier`, into it; false where that is not legal.
bool ElementwiseGroups::join(Index earlier, Index later) {
  Group& a = groups_[earlier];
  Group& b = groups_[later];
  if (a.shape == nullptr || b.shape == nullptr || *a.shape != *b.shape) return false;
  if (!reduce_alike(a, b)) return false;
  const size_t reads = a.reads + b.reads - reads_between(earlier, later);
  if (reads > kMostReads) return false;
  if (reads_reduction(later, a) || reads_reduction(earlier, b)) return false;
  if (!reorder(earlier, later)) return false;
  parent_[later] = earlier;
  next_[a.last] = later;
  a.last = b.last;
  a.reductions.insert(a.reductions.end(), b.reductions.begin(), b.reductions.end());
  a.members += b.members;
  a.reads = reads;
  b.joined = true;
  return true;
}

bool ElementwiseGroups::reads_reduction(Index reader, const Group& maker) const {
  return std::any_of(maker.reductions.begin(), maker.reductions.end(), [&](const Node* reduction) {
    const auto& uses = reduction->output()->uses();
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return group_of(use.node) == reader; });
  });
}

// The groups between the two that need `earlier`; false when `later` needs one of them.
bool ElementwiseGroups::find_dependents(Index earlier, Index later, std::vector<Index>& dependents) {
  ++visits_;
  bool is_cycle = false;
  std::vector<Index> waiting{earlier};
  while (!waiting.empty() && !is_cycle) {
    const Index group = waiting.back();
    waiting.pop_back();
    for_each_member(group, [&](Index member) {
      for (Index node : readers_[member]) {
        const Index reader = group_of(node);
        if (reader == later) is_cycle = is_cycle || group != earlier;
        if (reader == group || groups_[reader].visit == visits_ || !stands_before(reader, later)) continue;
        groups_[reader].visit = visits_;
        dependents.push_back(reader);
        waiting.push_back(reader);
      }
    });
  }
  return !is_cycle;
}

// Puts `earlier` in the place of `later`, and what depends on it after that, so that both can stand in one
// place; false on a cycle.
bool ElementwiseGroups::reorder(Index earlier, Index later) {
  std::vector<Index> dependents;
  if (!find_dependents(earlier, later, dependents)) return false;
  std::sort(dependents.begin(), dependents.end(), [&](Index a, Index b) { return stands_before(a, b); });
  const auto place = groups_[later].position;
  order_.splice(place, order_, groups_[earlier].position);
  groups_[earlier].label = groups_[later].label;
  const auto end = order_.erase(place);
  if (dependents.empty()) return true;
  for (Index group : dependents) order_.splice(end, order_, groups_[group].position);
  label_inserted(order_, groups_[dependents.front()].position, end,
                 [this](Index group) -> int64_t& { return groups_[group].label; });
  return true;
}

}  // namespace tessera::passes
