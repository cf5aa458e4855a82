// Which nodes become one cluster each.
#pragma once

#include <list>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tessera/passes/pass.h"

namespace tessera::passes {

// Groups elementwise operators of one iteration shape, and the reductions after them. The options say how
// many reductions over the same axes one group may hold, and whether small groups that nothing connects are
// joined.
//
// A group is grown from its last node towards the first: a node joins the groups of its readers, the nearest
// first. So work that only the backward half needs goes there and is not kept in memory from the forward
// half. What was made before, and is made once more, goes to the last group that reads the same. Two groups
// join only where no way leads from one to the other through a node outside, for which the groups are kept in
// a topological order of the contracted graph (after Pearce and Kelly, "A dynamic topological sort algorithm
// for directed acyclic graphs", 2007).
class ElementwiseGroups {
 public:
  ElementwiseGroups(const Graph& graph, const PassContext& context);

  // Of each group, in the order of the graph.
  std::vector<std::vector<Node*>> members() const;

 private:
  using Index = size_t;  // of a node, and of the group that it is the first member of
  static constexpr Index kNone = static_cast<Index>(-1);
  // A kernel for a GPU takes some thousands of pointers, and one of hundreds takes seconds to compile.
  static constexpr size_t kMostReads = 256;

  struct Group {
    Index last = kNone;                    // member; the others follow each other from the first by next_
    const SymbolicShape* shape = nullptr;  // of the iteration; null where nothing fuses
    std::vector<const Node*> reductions;
    size_t members = 1;
    size_t reads = 0;  // of values from outside but numbers, each as often as a member reads it
    std::list<Index>::iterator position;
    int64_t label = 0;    // grows along order_
    size_t visit = 0;     // the latest one
    bool joined = false;  // to an earlier one
  };

  Index group_of(Index node) const;
  Index group_of(const Node* node) const { return group_of(index_of_.at(node)); }
  bool stands_before(Index a, Index b) const { return groups_[a].label < groups_[b].label; }
  template <typename Use>
  void for_each_member(Index group, Use&& use) const;  // with its index
  bool is_small(Index group) const;
  size_t count_values(Index group) const;
  size_t reads_between(Index a, Index b) const;
  bool reduce_alike(const Group& a, const Group& b) const;
  bool reads_reduction(Index reader, const Group& maker) const;
  bool find_dependents(Index earlier, Index later, std::vector<Index>& dependents);
  bool reorder(Index earlier, Index later);
  bool join(Index earlier, Index later);
  void join_readers(Index node);
  void join_reductions_of_one_value(const Graph& graph);
  void join_unconnected(size_t most_values);
  void join_copies();
  std::vector<Index> members_of(Index group) const;  // in the graph's order
  bool is_recomputed(Index group) const;
  std::unordered_set<const Value*> read_by(Index group) const;

  size_t most_reductions_;
  std::unordered_map<const Node*, Index> index_of_;
  std::vector<Node*> nodes_;
  std::vector<std::vector<Index>> readers_;  // of each node: nodes
  std::vector<Index> next_;                  // member of the same group
  mutable std::vector<Index> parent_;  // of a group that has joined another; shortened by who looks it up
  std::vector<Group> groups_;
  std::list<Index> order_;  // of the groups
  size_t visits_ = 0;
};

}  // namespace tessera::passes
