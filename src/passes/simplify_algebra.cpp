// Identities that cost nothing to see: x + 0, x * 1, reshape of reshape, transpose of transpose, broadcasts
// that the reader makes anyway, gathers and slices of all there is, reductions over axes of extent 1, casts
// and slices of what was joined, activations between reshapes.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "passes/passes.h"
#include "passes/permutation.h"

namespace tessera::passes {
namespace {

bool is(const Node* node, std::string_view operator_name) {
  return node != nullptr && node->operator_name() == operator_name;
}

// The number that every element of the value has, when that is known.
std::optional<double> uniform_value(const Value* value) {
  while (is(value->producer(), "broadcast_to") || is(value->producer(), "reshape"))
    value = value->producer()->input(0);
  if (!is(value->producer(), "constant")) return std::nullopt;
  const Tensor& tensor = value->producer()->attributes().tensor("value");
  if (tensor.size() == 0) return std::nullopt;
  const double first = tensor.at(0);
  for (int64_t i = 1; i < std::min<int64_t>(tensor.size(), 4096); ++i) {
    if (tensor.at(i) != first) return std::nullopt;
  }
  return tensor.size() > 4096 ? std::nullopt : std::optional<double>(first);
}

bool is_uniform(const Value* value, double wanted) {
  const std::optional<double> number = uniform_value(value);
  return number.has_value() && *number == wanted && !std::signbit(*number);
}

// `x` where the node's result is x itself; it must already have the result's shape.
Value* same_shape(const Node& node, Value* x) {
  return x->type() == node.output()->type() ? x : nullptr;
}

Value* neutral_operand(const Node& node) {
  const std::string& name = node.operator_name();
  if (name == "add") {
    // x + (+0) is x for every x but -0; adding +0 to -0 gives +0, which compares equal.
    if (is_uniform(node.input(1), 0)) return same_shape(node, node.input(0));
    if (is_uniform(node.input(0), 0)) return same_shape(node, node.input(1));
  } else if (name == "subtract") {
    if (is_uniform(node.input(1), 0)) return same_shape(node, node.input(0));
  } else if (name == "multiply") {
    if (is_uniform(node.input(1), 1)) return same_shape(node, node.input(0));
    if (is_uniform(node.input(0), 1)) return same_shape(node, node.input(1));
  } else if (name == "divide") {
    if (is_uniform(node.input(1), 1)) return same_shape(node, node.input(0));
  } else if (name == "negate" && is(node.input(0)->producer(), "negate")) {
    return node.input(0)->producer()->input(0);
  } else if (name == "select") {
    if (node.input(1) == node.input(2)) return same_shape(node, node.input(1));
    if (const std::optional<double> condition = uniform_value(node.input(0))) {
      return same_shape(node, node.input(*condition != 0 ? 1 : 2));
    }
  }
  return nullptr;
}

Value* merge_movement(const Node& node) {
  Node* before = node.input(0)->producer();
  const std::string& name = node.operator_name();
  if (name == "reshape" || name == "broadcast_to" || name == "cast" || name == "slice") {
    if (node.input(0)->type() == node.output()->type()) return node.input(0);
  }
  if (name == "reshape" && is(before, "reshape"))
    return ops::reshape(before->input(0), node.output()->shape());
  if (name == "transpose") return simpler_transpose(node);
  // A widening cast that is narrowed again.
  if (name == "cast" && is(before, "cast") && before->input(0)->type() == node.output()->type()) {
    const DataType middle = node.input(0)->data_type();
    const DataType type = node.output()->data_type();
    const bool widened = middle == DataType::fp64 || (middle == DataType::fp32 && type != DataType::fp64);
    // Of narrower types a cast may saturate what was infinite.
    if (widened && kFloatingTypes.contains(type)) return before->input(0);
  }
  return nullptr;
}

// What is joined only to be narrowed, as weights of several layers are, is narrowed before: fewer bytes are
// joined, and each part may be made in its place.
Value* narrowed_before_join(const Node& node) {
  if (!is(&node, "cast") || !is(node.input(0)->producer(), "concat")) return nullptr;
  const Value& joined = *node.input(0);
  const DataType type = node.output()->data_type();
  if (joined.uses().size() > 1 || joined.is_output_or_update()) return nullptr;
  if (bits_of(type) >= bits_of(joined.data_type())) return nullptr;
  std::vector<Value*> parts;
  for (Value* part : joined.producer()->inputs()) parts.push_back(ops::cast(part, type));
  return ops::concat(parts, joined.producer()->attributes().integer("axis"));
}

// A slice of what was joined that lies within one part, as what a memory keeps of itself and a longer text
// does.
Value* slice_of_part(const Node& node) {
  const Node* join = is(&node, "slice") ? producer_of(node.input(0), "concat") : nullptr;
  if (join == nullptr || !node.input(0)->type().is_static()) return nullptr;
  const int64_t named = join->attributes().integer("axis");
  const auto axis = static_cast<size_t>(named < 0 ? named + node.output()->type().rank() : named);
  std::vector<int64_t> starts = node.attributes().integers("starts");
  std::vector<int64_t> limits = node.attributes().integers("limits");
  const std::vector<int64_t>& strides = node.attributes().integers("strides");
  const int64_t start = starts[axis] < 0 ? starts[axis] + node.input(0)->shape()[axis].value() : starts[axis];
  const int64_t end = start + (node.output()->shape()[axis].value() - 1) * strides[axis] + 1;
  int64_t first = 0;
  for (Value* part : join->inputs()) {
    const int64_t next = first + part->shape()[axis].value();
    if (start >= first && start < end && end <= next) {
      starts[axis] = start - first;
      limits[axis] = end - first;
      return ops::slice(part, std::move(starts), std::move(limits), strides);
    }
    first = next;
  }
  return nullptr;
}

// Whether the tensor counts from 0 on.
bool counts(const Tensor& indices) {
  for (int64_t i = 0; i < indices.size(); ++i) {
    if (indices.at(i) != static_cast<double>(i)) return false;
  }
  return true;
}

// A gather of all there is in its order, as exporters write a tensor that is looked at in another shape.
Value* gather_of_all(const Node& node) {
  if (!is(&node, "gather") || !is(node.input(1)->producer(), "constant")) return nullptr;
  const Tensor& indices = node.input(1)->producer()->attributes().tensor("value");
  const SymbolicShape& shape = node.input(0)->shape();
  const int64_t axis = node.attributes().integer("axis");
  const int64_t from_start = axis < 0 ? axis + std::ssize(shape) : axis;
  if (shape[static_cast<size_t>(from_start)] != Dimension(indices.size()) || !counts(indices)) return nullptr;
  return ops::reshape(node.input(0), node.output()->shape());
}

// A reduction over axes of extent 1 only moves nothing: a reshape.
Value* trivial_reduction(const Node& node) {
  if (node.schema().traits.reduction == ReductionKind::none) return nullptr;
  if (!node.input(0)->type().is_static() ||
      node.input(0)->type().element_count() != node.output()->type().element_count()) {
    return nullptr;
  }
  return ops::reshape(node.input(0), node.output()->shape());
}

// An activation between two reshapes goes before both, where the product that makes its operand may end with
// it.
Value* activation_before_reshape(Graph& graph, const Node& node) {
  if (!node.schema().traits.activation || node.output()->is_output_or_update()) return nullptr;
  const Node* reshape = producer_of(node.input(0), "reshape");
  if (reshape == nullptr || sole_reader(reshape->output()) != &node) return nullptr;
  const std::vector<Node*> readers = readers_of(node.output());
  const bool is_reshaped =
      std::ranges::all_of(readers, [](const Node* reader) { return is(reader, "reshape"); });
  if (readers.empty() || !is_reshaped) return nullptr;
  const Node* active =
      graph.add_node(node.operator_name(), {reshape->input(0)}, node.attributes(), node.name());
  return ops::reshape(active->output(), node.output()->shape());
}

// What broadcasts by itself needs no operand that was broadcast before.
bool drop_broadcasts(Graph& graph, Node& node) {
  if (!node.schema().broadcasts) return false;
  bool changed = false;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    Node* broadcast = node.input(i)->producer();
    if (!is(broadcast, "broadcast_to")) continue;
    SymbolicShape shape = broadcast->input(0)->shape();
    for (size_t j = 0; j < node.inputs().size(); ++j) {
      if (j != i) shape = broadcast_shapes(shape, node.input(j)->shape());
    }
    if (shape != node.output()->shape()) continue;
    std::vector<Value*> inputs = node.inputs();
    inputs[i] = broadcast->input(0);
    Node* smaller =
        graph.add_node(node.operator_name(), node.operands(inputs), node.attributes(), node.name());
    graph.replace_all_uses(node.output(), smaller->output());
    graph.erase(&node);
    changed = true;
    break;
  }
  return changed;
}

}  // namespace

bool simplify_algebra(Graph& graph, const PassContext&) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
      Node* node = (position++)->get();
      if (node->inputs().empty() || !node->bodies().empty()) continue;
      const InsertionPoint here(graph, node);
      Value* simpler = neutral_operand(*node);
      if (simpler == nullptr) simpler = merge_movement(*node);
      if (simpler == nullptr) simpler = narrowed_before_join(*node);
      if (simpler == nullptr) simpler = slice_of_part(*node);
      if (simpler == nullptr) simpler = gather_of_all(*node);
      if (simpler == nullptr) simpler = trivial_reduction(*node);
      if (simpler == nullptr) simpler = activation_before_reshape(graph, *node);
      if (simpler != nullptr) {
        graph.replace_all_uses(node->output(), simpler);
        graph.erase(node);
        again = true;
      } else if (drop_broadcasts(graph, *node)) {
        again = true;
      }
    }
    changed = changed || again;
  }
  return changed;
}

}  // namespace tessera::passes
