// Where the elements of a tensor lie in the memory of another, from which transposes, reshapes, splits and
// concatenations would move them: a kernel that takes strides reads and writes them there, and nothing moves.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/base/data_type.h"
#include "tessera/device/common/strided_move.h"
#include "tessera/graph/graph.h"

namespace tessera::backend {

struct MovedView {
  Shape shape;
  StridedView memory;  // an axis of extent 1 has some stride
};

// A tensor where it lies, in row-major order.
MovedView whole_view(const Value& value);

// What a node's result is of the memory of which its operand is such a view; nullopt where that takes a copy,
// and for anything but transpose, reshape and split.
std::optional<MovedView> view_of_result(const Value& result, const MovedView& operand);
// What a node's operand is where its result is such a view; nullopt where that takes a copy, and for anything
// but transpose, reshape and concat.
std::optional<MovedView> view_of_operand(const Use& use, const MovedView& result);

// What a value is of `source`, of which it is made; of `end`, which is made of it by its only readers.
std::optional<MovedView> view_of_source(const Value& value, const Value& source);
std::optional<MovedView> view_of_end(const Value& value, const Value& end);

// Whether the last axis is contiguous and each of its rows begins at a multiple of so many bytes, if the
// memory does.
bool has_aligned_rows(const MovedView& view, DataType type, int64_t bytes);

// The memory of a node in which an operand or result of one of its operators lies.
struct PlacedView {
  size_t place = 0;  // among the node's inputs, or its outputs
  MovedView view;
};
// Of what plays the role. Refuse (refusal.h) what does not lie in one input, or output, of the node.
PlacedView view_in_input(const Node& node, std::string_view role);
PlacedView view_in_output(const Node& node, std::string_view role);

}  // namespace tessera::backend
