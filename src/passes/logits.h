// What reads logits, values whose last axis is classes, and the gradients of their losses.
#pragma once

#include <functional>

#include "tessera/graph/graph.h"

namespace tessera::passes {

// cross_entropy and its gradient.
bool is_loss(const Node& node);

int64_t last_extent(const Value& value);
// The same columns in other rows.
bool keeps_columns(const Value& reshaped, const Value& value);
// A number for each column of the value, of its type.
bool is_bias(const Value& operand, const Value& value);
bool is_along_columns(const Node& argmax);
// Over all axes but the last.
bool sums_rows(const Node& sum);

// Calls `rewrite` for each matrix product that is still there when its turn comes, since what is rewritten at
// one may be another. Returns whether one of them changed the graph.
bool rewrite_products(Graph& graph, const std::function<bool(Node* product)>& rewrite);

}  // namespace tessera::passes
