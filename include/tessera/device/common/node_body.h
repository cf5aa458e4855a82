// What a node is made of, whether it is one operator or fused with its neighbors.
#pragma once

#include <optional>
#include <string_view>

#include "tessera/graph/graph.h"

namespace tessera::backend {

// The one node of this operator in the body, or the node itself without a body. Throws Error(unsupported)
// when the body holds none or several.
const Node& main_node(const Node& node, std::string_view operator_name);

// Which input of the node a value of its body, or of the node itself without one, is. Throws
// Error(unsupported) when it is none.
size_t input_index(const Node& node, const Value* value);

// Which output of the node it is; nullopt when it is none.
std::optional<size_t> output_index(const Node& node, const Value* value);

}  // namespace tessera::backend
