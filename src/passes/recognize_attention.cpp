// Attention that was written out, as exporters of other frameworks do, becomes the operator: one kernel that
// keeps the scores to itself, where written out they are two products and a softmax that go through memory.
#include <algorithm>
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

// Scores, and the node that masks them: it adds to them, or selects between them and a number.
struct Masked {
  Value* scores = nullptr;
  const Node* mask = nullptr;
  size_t side = 0;  // the mask's operand that the scores are
};

// Whether an operand of the node is a product of the node's shape, multiplied by a number perhaps.
bool are_scores(Value* operand, const Node& node) {
  return operand->shape() == node.output()->shape() && sole_reader(operand) == &node &&
         producer_of(without_scale(operand, &node).value, "matmul") != nullptr;
}

// So far below all scores that what is added to it does not change it: a query from which all keys are hidden
// has equal weights either way.
bool hides(const Value* value) {
  constexpr double kHides = -1e30;
  const std::optional<double> number = scalar_constant(value);
  return number.has_value() && *number <= kHides;
}

Masked without_mask(Value* scores, const Node* reader) {
  const Node* node = sole_reader(scores) == reader ? scores->producer() : nullptr;
  const bool adds = node != nullptr && node->operator_name() == "add";
  if (!adds && (node == nullptr || node->operator_name() != "select")) return {scores};
  const size_t first = adds ? 0 : 1;  // of two sides
  for (const size_t side : {first, first + 1}) {
    const size_t other = 2 * first + 1 - side;
    if (are_scores(node->input(side), *node) && (adds || hides(node->input(other))))
      return {node->input(side), node, side};
  }
  return {scores};
}

// What the mask adds to the scores.
Value* addend_of(const Masked& masked) {
  const Node& mask = *masked.mask;
  if (mask.operator_name() == "add") return mask.input(1 - masked.side);
  Value* nothing = ops::constant(masked.scores->graph(), Tensor::full(masked.scores->data_type(), {}, 0));
  return masked.side == 1 ? ops::select(mask.input(0), nothing, mask.input(2))
                          : ops::select(mask.input(0), mask.input(1), nothing);
}

// [batch or 1, heads or 1, queries, keys]. In 16 bits a number that hides a key must stay one: minus infinity
// would leave a query from which all are hidden no weights.
Value* bias_of(const Masked& masked, Precision precision) {
  Value* bias = addend_of(masked);
  const Value& scores = *masked.scores;
  if (const std::optional<DataType> type = lowered_type(precision); type.has_value()) {
    const double least = traits_of(*type).lowest;
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

// [batch, key heads, rows, width] of which each head is repeated for neighboring heads of queries; the value
// itself where none is.
Value* without_repeats(Value* heads) {
  const Node* joined = producer_of(heads, "reshape");
  const Node* repeated = joined == nullptr ? nullptr : producer_of(joined->input(0), "broadcast_to");
  if (repeated == nullptr) return heads;
  const SymbolicShape& s = repeated->output()->shape();
  const bool is_by_heads = s.size() == kRank + 1 &&
                           heads->shape() == SymbolicShape{s[0], s[1] * s[2], s[3], s[4]} &&
                           repeated->input(0)->shape() == SymbolicShape{s[0], s[1], 1, s[3], s[4]};
  return is_by_heads ? ops::reshape(repeated->input(0), {s[0], s[1], s[3], s[4]}) : heads;
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
  const Scaled scores = without_scale(masked.scores, masked.mask == nullptr ? softmax : masked.mask);
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
  if (masked.mask != nullptr) options.bias = bias_of(masked, precision);
  Value* keys = without_repeats(k.value);
  Value* values = without_repeats(v);
  if (keys->shape()[1] == values->shape()[1]) return ops::attention(q.value, keys, values, options).y;
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
