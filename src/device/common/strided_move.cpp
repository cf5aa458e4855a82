#include "tessera/device/common/strided_move.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera::backend {
namespace {

StridedMove transpose(const Node& node) {
  const std::vector<int64_t> source = row_major_strides(node.input(0)->type().static_shape());
  StridedMove move{.shape = node.output()->type().static_shape(), .from = {}, .to = {}};
  for (int64_t axis : node.attributes().integers("permutation")) {
    move.from.strides.push_back(source[static_cast<size_t>(axis)]);
  }
  move.to.strides = row_major_strides(move.shape);
  return move;
}

// Parts along an axis; `whole` is the tensor that they make up.
std::vector<StridedMove> part_moves(const Value* whole, const std::vector<const Value*>& parts, int64_t axis,
                                    bool from_whole) {
  const std::vector<int64_t> strides = row_major_strides(whole->type().static_shape());
  const auto place = static_cast<size_t>(axis < 0 ? axis + whole->type().rank() : axis);
  std::vector<StridedMove> moves;
  int64_t offset = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape shape = parts[i]->type().static_shape();
    StridedView inside{offset * strides[place], strides};
    StridedView own{0, row_major_strides(shape)};
    if (!from_whole) std::swap(inside, own);
    moves.push_back({shape, std::move(inside), std::move(own), from_whole ? 0 : i, from_whole ? i : 0});
    offset += shape[place];
  }
  return moves;
}

StridedMove slice(const Node& node) {
  const Shape source = node.input(0)->type().static_shape();
  StridedMove move{.shape = node.output()->type().static_shape(), .from = {}, .to = {}};
  move.from.strides = row_major_strides(source);
  move.to.strides = row_major_strides(move.shape);
  for (size_t axis = 0; axis < source.size(); ++axis) {
    const int64_t start = node.attributes().integers("starts")[axis];
    const int64_t first = std::clamp<int64_t>(start < 0 ? source[axis] + start : start, 0, source[axis]);
    move.from.offset += first * move.from.strides[axis];
    move.from.strides[axis] *= std::min(node.attributes().integers("strides")[axis],
                                        std::max<int64_t>(source[axis], 1));  // any further one ends the axis
  }
  return move;
}

// Rounds up; 0 for values that are not positive.
int64_t ceil_quotient(int64_t value, int64_t divisor) {
  return value <= 0 ? 0 : (value + divisor - 1) / divisor;
}

StridedMove pad(const Node& node) {
  const Shape source = node.input(0)->type().static_shape();
  const Shape target = node.output()->type().static_shape();
  StridedMove move{.shape = {}, .from = {0, row_major_strides(source)}, .to = {0, row_major_strides(target)}};
  for (size_t axis = 0; axis < source.size(); ++axis) {
    const int64_t low = node.attributes().integers("low")[axis];
    const int64_t step = source[axis] > 1 ? node.attributes().integers("interior")[axis] + 1 : 1;
    // Element i lands at low + i * step; those outside the result are cropped.
    const int64_t first = ceil_quotient(-low, step);
    const int64_t last = std::min(source[axis], ceil_quotient(target[axis] - low, step));
    move.shape.push_back(std::max<int64_t>(last - first, 0));
    if (move.shape.back() == 0) continue;
    move.from.offset += first * move.from.strides[axis];
    move.to.offset += (low + first * step) * move.to.strides[axis];
    move.to.strides[axis] *= step;
  }
  return move;
}

}  // namespace

std::vector<StridedMove> strided_moves(const Node& node) {
  const std::string& name = node.operator_name();
  if (name == "transpose") return {transpose(node)};
  if (name == "slice") return {slice(node)};
  if (name == "pad") return {pad(node)};
  if (name == "concat") {
    return part_moves(node.output(), {node.inputs().begin(), node.inputs().end()},
                      node.attributes().integer("axis"), false);
  }
  require(name == "split", ErrorCode::internal, "'{}' is no strided move", name);
  std::vector<const Value*> parts;
  for (const auto& output : node.outputs()) parts.push_back(output.get());
  return part_moves(node.input(0), parts, node.attributes().integer("axis"), true);
}

std::vector<StridedMove> padding_moves(const Node& node) {
  const Shape target = node.output()->type().static_shape();
  const std::vector<int64_t> strides = row_major_strides(target);
  const StridedMove inside = pad(node);
  Shape first(target.size(), 0);
  Shape extents = target;
  std::vector<StridedMove> moves;
  const auto add_box = [&] {
    if (element_count(extents) == 0) return;
    StridedMove box{
        .shape = extents, .from = {0, std::vector<int64_t>(target.size(), 0)}, .to = {0, strides}};
    for (size_t axis = 0; axis < target.size(); ++axis) box.to.offset += first[axis] * strides[axis];
    moves.push_back(std::move(box));
  };
  if (inside.to.strides != strides || element_count(inside.shape) == 0) {
    add_box();
    return moves;
  }
  // Before and after what is moved along each axis, and within it along those before.
  for (size_t axis = 0; axis < target.size(); ++axis) {
    const int64_t begin = std::max<int64_t>(node.attributes().integers("low")[axis], 0);
    const int64_t end = begin + inside.shape[axis];
    extents[axis] = begin;
    add_box();
    first[axis] = end;
    extents[axis] = target[axis] - end;
    add_box();
    first[axis] = begin;
    extents[axis] = inside.shape[axis];
  }
  return moves;
}

AxisView view_along(const Shape& shape, int64_t axis) {
  const auto place = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  AxisView view;
  for (size_t i = 0; i < shape.size(); ++i) {
    (i < place ? view.outer : i == place ? view.extent : view.inner) *= shape[i];
  }
  return view;
}

}  // namespace tessera::backend
