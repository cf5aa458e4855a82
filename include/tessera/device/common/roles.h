// Which values of a node, one operator or fused with its neighbors, are what to a kernel. The values of one
// operator play the roles that its schema names.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::backend {

bool has_role(const Node& node, std::string_view role);

// The first value that plays the role, in the body of a fused node. Throws Error(unsupported) where none
// does.
const Value& in_role(const Node& node, std::string_view role);

// The node that makes it, in the body of a fused node. Throws Error(unsupported) where none does.
const Node& maker_of_role(const Node& node, std::string_view role);

// Which inputs of the node play the role, in order. Throws Error(unsupported) for a value that is made inside
// the body, and the first where none does.
size_t input_in_role(const Node& node, std::string_view role);
std::optional<size_t> optional_input_in_role(const Node& node, std::string_view role);
std::vector<size_t> inputs_in_role(const Node& node, std::string_view role);

// Which output of the node plays the role; nullopt where none does.
std::optional<size_t> output_in_role(const Node& node, std::string_view role);

// Which input of the node a value of its body, or of the node itself without one, is. Throws
// Error(unsupported) when it is none.
size_t input_index(const Node& node, const Value* value);

// Which output of the node it is; nullopt when it is none.
std::optional<size_t> output_index(const Node& node, const Value* value);

}  // namespace tessera::backend
