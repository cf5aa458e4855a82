// Patterns of nodes that a device has one kernel for. The device brings them, the pass fuse_patterns looks
// for them, and the fused node says which of its values plays which role, so that no kernel looks for it
// again.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

// What a value is to the kernels of a fused node.
struct FusionRole {
  std::string name;
  Value* value = nullptr;  // one that a member of the fusion reads or makes
};

// Nodes that a pattern was found in.
struct FusionMatch {
  std::vector<Node*> members;
  std::vector<Value*> outputs;  // of the fused node, in order
  // A role may be played by several values, in order.
  std::vector<FusionRole> roles;
  Node* anchor = nullptr;  // set by the pass

  // Gives the operands and results of the node the roles that its schema names, but for those that are
  // played already.
  void add_roles_of(const Node& node);
  void add_role(std::string_view name, Value* value) { roles.push_back({std::string(name), value}); }
  // The first that plays the role; null where none does.
  Value* value(std::string_view role) const;
  size_t count(std::string_view role) const;
  // The node that makes it. Throws Error(internal) where none does.
  Node& maker(std::string_view role) const;
};

struct FusionPattern {
  std::string kind;                // of the fused nodes
  std::string anchor;              // the operator at whose nodes it is looked for, in the graph's order
  std::vector<std::string> roles;  // all that may be played
  // Leaves the graph as it is.
  std::function<std::optional<FusionMatch>(Node& anchor)> match;
  // Whether the device's kernel takes what was found and is the faster way. Empty: always.
  std::function<bool(const FusionMatch& match)> worth = {};
  // Adds members that the graph does not hold yet, such as sums of what the others make. Empty: there are
  // none.
  std::function<void(FusionMatch& match)> complete = {};
  // Rewrites what is around the fused node by what it makes; the members are gone. Empty: it stays.
  std::function<void(const FusionMatch& match, Node& fused)> finish = {};
  // Is tried at each node right after the pattern before it, of the same anchor, where that was not found or
  // not worth it. Otherwise a pattern is tried when the one before it has been tried at all nodes.
  bool alternative = false;
};

}  // namespace tessera
