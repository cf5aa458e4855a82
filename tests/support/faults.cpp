#include "support/faults.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::testing {
namespace {

// Calls visit(element) for those whose index along each of the axes is the place; nothing reads the `unread`
// last ones.
template <typename Visit>
void each_at(const Shape& shape, const std::vector<size_t>& axes, Place place, int64_t unread,
             const Visit& visit) {
  const int64_t count = element_count(shape);
  const auto strides = [&] {
    std::vector<int64_t> result(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) result[axis - 1] = result[axis] * shape[axis];
    return result;
  }();
  for (int64_t element = 0; element < count; ++element) {
    const bool there = std::all_of(axes.begin(), axes.end(), [&](size_t axis) {
      const int64_t index = element / strides[axis] % shape[axis];
      return index == (place == Place::first    ? 0
                       : place == Place::middle ? shape[axis] / 2
                                                : shape[axis] - 1 - unread);
    });
    if (there) visit(element);
  }
}

double lowest_of(DataType type) {
  switch (type) {
    case DataType::int8:
      return -128;
    case DataType::uint8:
      return 0;
    case DataType::int32:
      return std::numeric_limits<int32_t>::min();
    case DataType::int64:
      return -std::ldexp(1.0, 62);
    default:
      return -std::numeric_limits<double>::infinity();
  }
}

double highest_of(DataType type) {
  switch (type) {
    case DataType::int8:
      return 127;
    case DataType::uint8:
      return 255;
    case DataType::int32:
      return std::numeric_limits<int32_t>::max();
    case DataType::int64:
      return std::ldexp(1.0, 62);
    default:
      return std::numeric_limits<double>::infinity();
  }
}

size_t rank_of(const Node& node, size_t operand) {
  return static_cast<size_t>(node.input(operand)->type().rank());
}

std::vector<size_t> first_axes(size_t count) {
  std::vector<size_t> axes(count);
  std::iota(axes.begin(), axes.end(), size_t{0});
  return axes;
}

size_t axis_from(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

// Which elements of which operand are left out: those at one place along all axes.
struct Row {
  size_t operand = 0;
  std::vector<size_t> axes;
  double neutral = 0;
  bool own = false;  // results at that place are of the element itself
  Place place = Place::last;
  int64_t unread = 0;  // how many places come after the last one that is read
};

// A logit so far below the others that its exponential does not count, and small enough to be multiplied.
constexpr double kNoLogit = -60;

std::vector<Row> rows_of(const Node& node) {
  const std::string& name = node.operator_name();
  if (node.inputs().empty()) return {};
  const DataType type = node.input(0)->data_type();
  const size_t rank = rank_of(node, 0);
  const auto integer = [&](const char* attribute) { return node.attributes().integer(attribute); };
  if (name == "matmul") return {{0, {node.attributes().boolean("transpose_a") ? rank - 2 : rank - 1}}};
  if (name == "convolution" || name == "convolution_data_gradient" || name == "transposed_convolution")
    return {{0, {rank - 1}}};
  if (name == "convolution_weight_gradient")
    return {{1, first_axes(rank - 1), 0, false, Place::middle}};  // at the border all may be padding
  if (name == "attention" || name == "dropout_attention")
    return {{2, {rank_of(node, 2) - 2}, 0, false, Place::first}};   // none may see the last
  if (name == "attention_bias_gradient") return {{0, {rank - 1}}};  // sums over widths alone
  if (name == "attention_gradient" || name == "dropout_attention_gradient") return {{0, {rank - 2}, 0, true}};
  if (node.schema().traits.reduction != ReductionKind::none) {
    const std::vector<int64_t>& axes = node.attributes().integers("axes");
    if (rank == 0) return {};
    const size_t axis = axes.empty() ? rank - 1 : axis_from(axes.back(), rank);
    const double neutral = name == "reduce_max"       ? lowest_of(type)
                           : name == "reduce_min"     ? highest_of(type)
                           : name == "reduce_product" ? 1
                                                      : 0;
    return {{0, {axis}, neutral}};
  }
  // After the first there may be what no window holds.
  if (name == "max_pool") return {{0, {rank - 2}, lowest_of(type), false, Place::first}};
  if (name == "average_pool" || name.ends_with("pool_gradient"))
    return {{0, {rank - 2}, 0, false, Place::first}};
  if (name == "softmax" || name == "log_softmax")
    return {{0, {axis_from(integer("axis"), rank)}, kNoLogit, true}};
  if (name == "cross_entropy" || name == "cross_entropy_gradient") {
    const int64_t columns = node.input(0)->type().static_shape()[1];
    return {{0, {1}, kNoLogit, true, Place::last, columns - ops::class_count(node.attributes(), columns)}};
  }
  if (name == "batch_norm_training" || name == "batch_norm_gradient")
    return {{0, first_axes(rank - 1), 0, true}};
  if (name == "layer_norm" || name == "group_norm") return {{0, {rank - 1}, 0, true}};
  // Sums over a row and, for scale and bias, over the rows.
  if (name == "layer_norm_gradient" || name == "group_norm_gradient")
    return {{0, {rank - 1}, 0, true}, {0, first_axes(rank - 1), 0, true}};
  if (name == "scatter_add" || name == "combine_rows") return {{1, first_axes(rank)}};
  return {};
}

std::string place_of(const Node& node, size_t operand) {
  return fmt::format("{} of {}", node.specification(operand).name, print(node));
}

// The operand that changes nothing, where there is one.
std::optional<double> neutral_operand(const Node& node, size_t operand) {
  static const std::map<std::string, double, std::less<>> kByName{
      {"bias", 0},          {"scale", 1},   {"mean", 0}, {"variance", 1}, {"inverse_deviation", 1},
      {"loss_gradient", 1}, {"cosines", 1}, {"sines", 0}};
  const std::string& name = node.operator_name();
  // Not centered, it is not read.
  const bool is_mean = node.specification(operand).name == "mean";
  if (is_mean && node.attributes().contains("centered") && !node.attributes().boolean("centered"))
    return std::nullopt;
  if (name == "add" || name == "subtract") return 0;
  if (name == "multiply" || name == "divide" || name == "power") return 1;
  if (name == "maximum") return lowest_of(node.input(operand)->data_type());
  if (name == "minimum") return highest_of(node.input(operand)->data_type());
  if (name == "select" && operand == 0) return 1;
  if (name == "binary_cross_entropy") return 0;
  if (node.schema().operator_class == OperatorClass::elementwise && name != "batch_norm_inference")
    return std::nullopt;
  const auto found = kByName.find(node.specification(operand).name);
  return found == kByName.end() ? std::nullopt : std::optional(found->second);
}

bool is_constant(const Value& value) {
  return value.producer() != nullptr && value.producer()->operator_name() == "constant";
}

// Sums and products with one input of the graph and one result of another node have that as their main
// operand; where both are inputs it is the first. A condition is never the main one.
bool is_main(const Node& node, size_t operand) {
  if (node.operator_name() == "select") return operand != 0;
  const auto is_input = [&](size_t index) { return node.input(index)->producer() == nullptr; };
  if (!is_input(operand)) return true;
  if (node.inputs().size() == 2 && operand == 0) return is_input(1) || is_constant(*node.input(1));
  return operand == 0;
}

}  // namespace

std::vector<OperandFault> left_out_rows(const Graph& graph) {
  std::vector<OperandFault> faults;
  for (const auto& node : graph.nodes()) {
    for (const Row& row : rows_of(*node)) {
      if (node->input(row.operand)->type().element_count() == 0) continue;
      faults.push_back({.text = "one row of " + place_of(*node, row.operand),
                        .node = node.get(),
                        .operand = row.operand,
                        .alter =
                            [row](const Tensor& operand) {
                              Tensor result = operand.clone();
                              each_at(result.shape(), row.axes, row.place, row.unread,
                                      [&](int64_t element) { result.set(element, row.neutral); });
                              return result;
                            },
                        .own_axes = row.own ? row.axes : std::vector<size_t>{},
                        .place = row.place,
                        .unread = row.unread});
    }
  }
  return faults;
}

std::vector<OperandFault> dropped_operands(const Graph& graph) {
  std::vector<OperandFault> faults;
  for (const auto& node : graph.nodes()) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const std::optional<double> neutral = neutral_operand(*node, i);
      if (!neutral || is_main(*node, i) || node->input(i)->type().element_count() == 0) continue;
      faults.push_back({.text = place_of(*node, i),
                        .node = node.get(),
                        .operand = i,
                        .alter =
                            [value = *neutral](const Tensor& operand) {
                              return Tensor::full(operand.data_type(), operand.shape(), value);
                            },
                        .own_axes = {}});
    }
  }
  return faults;
}

Tensor without_own(const OperandFault& fault, const Tensor& altered, const Tensor& honest) {
  const Shape operand = fault.node->input(fault.operand)->type().static_shape();
  const Shape& shape = altered.shape();
  const bool has_place = !fault.own_axes.empty() && shape.size() == operand.size() &&
                         std::all_of(fault.own_axes.begin(), fault.own_axes.end(),
                                     [&](size_t axis) { return shape[axis] == operand[axis]; });
  if (!has_place) return altered;
  Tensor result = altered.clone();
  each_at(shape, fault.own_axes, fault.place, fault.unread,
          [&](int64_t element) { result.set(element, honest.at(element)); });
  return result;
}

}  // namespace tessera::testing
