// Attention that was written out, as exporters of other frameworks do, becomes the operator: one kernel that
// keeps the scores to itself, where written out they are two products and a softmax that go through memory.
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

constexpr size_t kRank = 4;  // [batch, heads, rows, width]

// A value and the number that multiplies it.
struct Scaled {
  Value* value = nullptr;
  double number = 1;
};

// Takes off the scalars that multiply or divide a value, where nothing but `reader` reads it.
Scaled without_scale(Value* value, const Node* reader) {
  Scaled result{value};
  while (const Node* node = result.value->producer()) {
    const bool multiplies = node->operator_name() == "multiply";
    if ((!multiplies && node->operator_name() != "divide") || sole_reader(result.value) != reader) break;
    std::optional<double> number = scalar_constant(node->input(1));
    Value* rest = node->input(0);
    if (!number.has_value() && multiplies) {
      number = scalar_constant(node->input(0));
      rest = node->input(1);
    }
    if (!number.has_value() || rest->type() != result.value->type()) break;
    result = {rest, multiplies ? result.number * *number : result.number / *number};
    reader = node;
  }
  return result;
}

bool is_plain_product(const Node& matmul) {
  return matmul.inputs().size() == 2 && !matmul.attributes().boolean("transpose_a") &&
         !matmul.attributes().boolean("transpose_b");
}

// What is added to the scores: a value, or nothing where a condition does not hold.
struct Masked {
  Value* scores = nullptr;
  Value* bias = nullptr;
};

// Whether an operand of the node is a product of the node's shape, multiplied by a number perhaps.
bool are_scores(Value* operand, const Node& node) {
  return operand->shape() == node.output()->shape() && sole_reader(operand) == &node &&
         producer_of(without_scale(operand, &node).value, "matmul") != nullptr;
}

std::optional<Masked> addition_in(const Node& node) {
  for (const size_t side : {size_t{0}, size_t{1}}) {
    if (are_scores(node.input(side), node)) return Masked{node.input(side), node.input(1 - side)};
  }
  return std::nullopt;
}

// Scores where a condition holds (or does not), a number in place of the others, which no softmax tells from
// the number added to them: it hides them.
std::optional<Masked> selection_in(const Node& node) {
  constexpr double kHides = -1e4;
  for (const size_t side : {size_t{1}, size_t{2}}) {
    Value* scores = node.input(side);
    const std::optional<double> number = scalar_constant(node.input(3 - side));
    if (!are_scores(scores, node) || !number.has_value() || *number > kHides) continue;
    Graph& graph = scores->graph();
    Value* nothing = ops::constant(graph, Tensor::full(scores->data_type(), {}, 0));
    Value* hidden = ops::constant(graph, Tensor::full(scores->data_type(), {}, *number));
    return Masked{scores, side == 1 ? ops::select(node.input(0), nothing, hidden)
                                    : ops::select(node.input(0), hidden, nothing)};
  }
  return std::nullopt;
}

Masked without_mask(Value* scores, const Node* reader) {
  const Node* node = scores->producer();
  if (node != nullptr && sole_reader(scores) == reader) {
    const bool adds = node->operator_name() == "add";
    const bool selects = node->operator_name() == "select";
    const std::optional<Masked> masked = adds      ? addition_in(*node)
                                         : selects ? selection_in(*node)
                                                   : std::nullopt;
    if (masked.has_value()) return *masked;
  }
  return {scores};
}

// [batch or 1, heads or 1, queries, keys]. A number that hides a key must stay one: a query from which all
// are hidden has equal weights, and minus infinity would leave it none.
Value* bias_of(Value* bias, const Value& scores, Precision precision) {
  const DataType type = precision == Precision::fp16   ? DataType::fp16
                        : precision == Precision::bf16 ? DataType::bf16
                                                       : scores.data_type();
  if (type != scores.data_type()) {
    const double least = type == DataType::fp16 ? -65504 : -std::ldexp(255.0, 120);
    bias = ops::maximum(bias, ops::constant(bias->graph(), Tensor::full(bias->data_type(), {}, least)));
  }
  SymbolicShape shape(kRank - bias->shape().size(), Dimension(1));
  shape.insert(shape.end(), bias->shape().begin(), bias->shape().end());
  bias = ops::reshape(bias, shape);
  std::copy(scores.shape().end() - 2, scores.shape().end(), shape.end() - 2);
  return shape == bias->shape() ? bias : ops::broadcast_to(bias, shape);
}

bool is_of_rank(const Value* value, const Value* like) {
  return value->shape().size() == kRank && value->data_type() == like->data_type() &&
         std::equal(value->shape().begin(), value->shape().begin() + 2, like->shape().begin());
}

// The keys [batch, heads, keys, width] that stand transposed before a product, and what multiplies them.
Scaled keys_of(Value* transposed, const Node* reader) {
  const Permutation swap{0, 1, 3, 2};
  Scaled keys = without_scale(transposed, reader);
  const Node* before = producer_of(keys.value, "transpose");
  if (before == nullptr) return {permuted(keys.value, swap), keys.number};
  Permutation order = before->attributes().integers("permutation");
  std::swap(order[kRank - 2], order[kRank - 1]);
  const Scaled inner = without_scale(before->input(0), before);
  return {permuted(inner.value, order), keys.number * inner.number};
}

// The attention that the product of a softmax and values is, or null.
Value* attention_of(const Node& product, Precision precision) {
  const Node* softmax = producer_of(product.input(0), "softmax");
  Value* v = product.input(1);
  if (softmax == nullptr || sole_reader(softmax->output()) != &product || !is_plain_product(product))
    return nullptr;
  const int64_t axis = softmax->attributes().integer("axis");
  const Value* weights = softmax->output();
  if (!is_floating(v->data_type()) || !is_of_rank(v, weights) || (axis != -1 && axis != int64_t{kRank} - 1))
    return nullptr;
  const Masked masked = without_mask(softmax->input(0), softmax);
  const Node* before = masked.bias == nullptr ? softmax : sole_reader(masked.scores);
  const Scaled scores = without_scale(masked.scores, before);
  const Node* first = producer_of(scores.value, "matmul");
  if (first == nullptr || sole_reader(scores.value) == nullptr || first->inputs().size() != 2 ||
      first->attributes().boolean("transpose_a") || scores.value->shape() != weights->shape()) {
    return nullptr;
  }
  const Scaled q = without_scale(first->input(0), first);
  if (!is_of_rank(q.value, weights) || !is_of_rank(first->input(1), weights)) return nullptr;
  const Scaled k = first->attributes().boolean("transpose_b") ? without_scale(first->input(1), first)
                                                              : keys_of(first->input(1), first);
  ops::AttentionOptions options{.scale = scores.number * q.number * k.number};
  if (masked.bias != nullptr) options.bias = bias_of(masked.bias, *weights, precision);
  return ops::attention(q.value, k.value, v, options).y;
}

}  // namespace

bool recognize_attention(Graph& graph, const PassContext& context) {
  bool changed = false;
  for (Node* node : nodes_of(graph, "matmul")) {
    if (!is_read(*node)) continue;
    const InsertionPoint here(graph, node);
    Value* attention = attention_of(*node, context.options.precision);
    if (attention == nullptr) continue;
    graph.replace_all_uses(node->output(), attention);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
