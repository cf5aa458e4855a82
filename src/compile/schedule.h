// The order in which the nodes of a static graph run.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct Schedule {
  std::vector<const Node*> once;  // depends on constants and frozen variables alone: run when these are bound
  std::vector<const Node*> every_run;        // the rest
  std::unordered_set<const Value*> settled;  // what is known before the first run: see settled_values()
  // Updates whose new value may be written straight into the variable: every other reader of the old value
  // runs before the producer. Indices into graph.updates().
  std::vector<bool> in_place_updates;
  // Variables that such an update overwrites while parts of the old value are still wanted: those are copied.
  std::unordered_set<const Value*> overwritten_before_last_read;
  std::unordered_set<const Node*> on_lane;  // those of every_run that go on beside the others
};

// True for a node whose results may be its first operand's memory, or parts of it.
bool may_view(const Node& node);

// Keeps the graph's own order, except that a node which frees more memory than it takes runs as soon as it
// can: weight updates right after their gradients, above all. Nodes for which `takes_lane` begin as soon as
// their inputs are there, and so does light work that only one of them waits for; what reads their results
// comes when nothing else is left to do. They keep one order, which is the same on all ranks of a graph: that
// in which their inputs are made.
Schedule schedule(const Graph& graph, bool frozen,
                  const std::function<bool(const Node& node)>& takes_lane = {});

}  // namespace tessera
