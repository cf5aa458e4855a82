// What fusion passes share: finding sole readers, and moving nodes into the body of one fused node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/graph/graph.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera {

// Kinds of the fused nodes that no device's pattern makes: elementwise work, and several such that do not
// depend on each other.
inline constexpr const char* kClusterKind = "cluster";
inline constexpr const char* kClustersKind = "clusters";
// A matrix product, alone or fused already, with elementwise work that makes its first factor, that reads it,
// or both.
inline constexpr const char* kProductClusterKind = "product_cluster";

using NodeSet = std::unordered_set<const Node*>;

// Replaces `members` by one node of operator "fused" whose attribute `kind` is the given one and whose body
// holds the members in their present order, of one that is fused of that kind already what it holds. The
// fused node reads what the members read from outside, in the order in which it is first read, except
// constants of one element, which are copied into the body; its outputs are `outputs` (values that members
// make), in that order, and keep their names. Its attributes `roles` and `role_values` say which value of the
// body plays which role: the given ones, and those of a member of its kind. Keeps the graph's order legal.
// Throws Error(internal) when a value that is not among `outputs` is read from outside, or when the fusion
// would make a cycle (see fuses_without_cycle).
Node* fuse_nodes(Graph& graph, const std::string& kind, const std::vector<Node*>& members,
                 const std::vector<Value*>& outputs, const std::vector<FusionRole>& roles = {});

// The values that play a role, in order: of the body of a fused node, or the operand or result of another
// node that has this name in its schema. Empty where none does.
std::vector<const Value*> values_in_role(const Node& node, std::string_view role);

// False when a way from one member to another leads through a node outside. The graph's order must be legal.
bool fuses_without_cycle(const std::vector<Node*>& members);

// Whether anything reads one of its outputs. What nothing reads stays until dead code is removed, and has
// nothing to fuse.
bool is_read(const Node& node);

// The values that members make and that something outside reads (a node, an output or an update).
std::vector<Value*> visible_values(const std::vector<Node*>& members);

// The only node that reads the value, and reads it once; null when another node, an output or an update reads
// it as well.
Node* sole_reader(const Value* value);
// The same when it is of that operator, else null.
Node* sole_reader(const Value* value, std::string_view operator_name);

// The nodes that read the value, each once, in the graph's order.
std::vector<Node*> readers_of(const Value* value);

// In the graph's order.
std::vector<Node*> nodes_of(const Graph& graph, std::string_view operator_name);

// The node that makes the value when it is of that operator, else null.
Node* producer_of(const Value* value, std::string_view operator_name);

// True for a convolution, or its data gradient, whose windows have one element and no strides, padding or
// groups.
bool is_pointwise(const Node& convolution);

// Whether the value holds one number per entry of the last axis of `shape`, and broadcasts along the others.
bool is_per_channel(const Value& value, const SymbolicShape& shape);

// The number held by a constant of one element, also after broadcasts and casts.
std::optional<double> scalar_constant(const Value* value);

}  // namespace tessera
