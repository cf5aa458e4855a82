#include "passes/axis_order.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::passes {
namespace {

// Batch normalization, whose channels are the last axis, is elementwise and does not.
bool treats_axes_alike(const Node& node) {
  if (node.schema().broadcasts || node.operator_name() == "broadcast_to") return true;
  const auto& inputs = node.inputs();
  return node.schema().operator_class == OperatorClass::elementwise &&
         std::all_of(inputs.begin(), inputs.end(),
                     [&](const Value* input) { return input->shape() == node.output()->shape(); });
}

size_t place(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

// What belongs to axis i of a value, at the place of that axis in the stored value.
template <typename List>
List reordered(const List& list, const Permutation& order) {
  List result(list.size());
  for (size_t i = 0; i < list.size(); ++i) result[static_cast<size_t>(order[i])] = list[i];
  return result;
}

SymbolicShape with_leading_ones(const SymbolicShape& shape, size_t rank) {
  SymbolicShape result(rank - shape.size(), Dimension(1));
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

SymbolicShape without_leading_ones(const SymbolicShape& shape) {
  const auto first = std::find_if(shape.begin(), shape.end(),
                                  [](const Dimension& extent) { return extent != Dimension(1); });
  return {first, shape.end()};
}

std::set<size_t> reduced_axes(const Node& node, size_t rank) {
  if (node.operator_name() == "argmax") return {place(node.attributes().integer("axis"), rank)};
  std::set<size_t> axes;
  for (int64_t axis : node.attributes().integers("axes")) axes.insert(place(axis, rank));
  for (size_t axis = 0; node.attributes().integers("axes").empty() && axis < rank; ++axis) axes.insert(axis);
  return axes;
}

}  // namespace

bool works_in_any_order(const Node& node, size_t rank) {
  if (treats_axes_alike(node)) return node.output()->shape().size() == rank;
  if (!node.schema().traits.any_axis_order || node.input(0)->shape().size() != rank) return false;
  // Indices along an axis, one after the other, leave the others where they are.
  return node.inputs().size() == 1 || node.output()->shape().size() == rank;
}

bool follows_order(const Node& node, size_t input, size_t rank) {
  return node.input(input)->shape().size() == rank;
}

bool operand_moves(const Node& node, size_t input, const Permutation& order) {
  return treats_axes_alike(node) &&
         !moves_nothing(with_leading_ones(node.input(input)->shape(), order.size()),
                        inverse_permutation(order));
}

Value* reordered_operand(const Node& node, size_t input, const Permutation& order) {
  Value* operand = node.input(input);
  if (!treats_axes_alike(node)) return operand;
  SymbolicShape shape = with_leading_ones(operand->shape(), order.size());
  if (operand_moves(node, input, order))
    return permuted(ops::reshape(operand, shape), inverse_permutation(order));
  shape = without_leading_ones(reordered(shape, order));
  return shape == without_leading_ones(operand->shape()) ? operand : ops::reshape(operand, shape);
}

Attributes reordered_attributes(const Node& node, const Permutation& order) {
  static const std::set<std::string_view> per_axis{"starts", "limits", "strides", "low", "high", "interior"};
  Attributes result = node.attributes();
  for (const auto& [name, attribute] : node.attributes().entries()) {
    if (name == "axis") {
      result.set(name, order[place(node.attributes().integer(name), order.size())]);
    } else if (name == "axes") {
      std::vector<int64_t> axes = node.attributes().integers(name);
      for (int64_t& axis : axes) axis = order[place(axis, order.size())];
      std::sort(axes.begin(), axes.end());
      result.set(name, axes);
    } else if (attribute.kind() == AttributeKind::integers && per_axis.contains(name)) {
      result.set(name, reordered(node.attributes().integers(name), order));
    } else if (attribute.kind() == AttributeKind::shape) {
      result.set(name, reordered(node.attributes().shape(name), order));
    }
  }
  return result;
}

Permutation result_order(const Node& node, const Permutation& order) {
  if (node.output()->shape().size() == order.size()) return order;
  const std::set<size_t> reduced = reduced_axes(node, order.size());
  Permutation kept;
  for (size_t axis = 0; axis < order.size(); ++axis) {
    if (!reduced.contains(axis)) kept.push_back(order[axis]);
  }
  Permutation result;
  for (int64_t axis : kept)
    result.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t other) { return other < axis; }));
  return result;
}

}  // namespace tessera::passes
