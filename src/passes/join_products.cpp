// Queries, keys and values are products of one value by weights of their own. Where those never change, one
// product by all of them side by side is one launch that reads the value once; a kernel of attention that
// reads operands wherever they lie takes its own from the parts of the result, which are never written apart.
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/settled_values.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

using Settled = std::unordered_set<const Value*>;

// x W or x W + b, and what moves it to where it is read.
struct Projection {
  size_t place = 0;  // among attention's operands
  Node* product = nullptr;
  Value* bias = nullptr;          // null: none
  std::vector<Node*> moves = {};  // the last first

  Value* source() const { return product->input(0); }
  Value* weight() const { return product->input(1); }
  int64_t columns() const { return product->output()->shape().back().value(); }
  // The axis of the weight that the columns are.
  int64_t axis() const { return product->attributes().boolean("transpose_b") ? 0 : 1; }
};

Value* bias_of(const Node& add, const Value* product, const Settled& settled) {
  Value* bias = add.input(add.input(0) == product ? 1 : 0);
  const bool is_bias = is_per_channel(*bias, product->shape()) && settled.contains(bias);
  return is_bias && bias->shape().size() == 1 ? bias : nullptr;
}

std::optional<Projection> projection_of(const Node& attention, size_t place, const Settled& settled) {
  Projection found{place};
  const Node* reader = &attention;
  Node* node = attention.input(place)->producer();
  const auto step = [&](Node* next) {
    reader = node;
    node = next;
  };
  const auto is_read_alone = [&] { return node != nullptr && sole_reader(node->output()) == reader; };
  while (is_read_alone() && (node->operator_name() == "transpose" || node->operator_name() == "reshape")) {
    found.moves.push_back(node);
    step(node->input(0)->producer());
  }
  if (is_read_alone() && node->operator_name() == "add") {
    Node* product = producer_of(node->input(0), "matmul");
    if (product == nullptr) product = producer_of(node->input(1), "matmul");
    if (product == nullptr) return std::nullopt;
    found.bias = bias_of(*node, product->output(), settled);
    if (found.bias == nullptr) return std::nullopt;
    step(product);
  }
  if (!is_read_alone() || node->operator_name() != "matmul") return std::nullopt;
  found.product = node;
  const SymbolicShape& weight = node->input(1)->shape();
  const bool joins = weight.size() == 2 && node->output()->shape().back().is_static() &&
                     !node->attributes().boolean("transpose_a") && settled.contains(node->input(1));
  return joins ? std::optional(found) : std::nullopt;
}

bool join_one(const Projection& a, const Projection& b) {
  return a.source() == b.source() && a.axis() == b.axis() &&
         a.weight()->data_type() == b.weight()->data_type() && (a.bias == nullptr) == (b.bias == nullptr);
}

// The most of its operands that come of one value: keys and values may come of another than queries.
std::vector<Projection> projections_of(const Node& attention, const Settled& settled) {
  std::vector<Projection> found;
  for (size_t place = 0; place < 3; ++place) {
    std::optional<Projection> projection = projection_of(attention, place, settled);
    if (projection.has_value()) found.push_back(*std::move(projection));
  }
  std::vector<Projection> joined;
  for (const Projection& first : found) {
    std::vector<Projection> same;
    std::copy_if(found.begin(), found.end(), std::back_inserter(same),
                 [&](const Projection& other) { return join_one(first, other); });
    if (same.size() > joined.size()) joined = std::move(same);
  }
  return joined;
}

// Whether the device's kernel takes this node with what moves its operands: parts of a value, too.
bool reads_moved_operands(Node& attention, const std::vector<FusionPattern>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const FusionPattern& pattern) {
    if (pattern.kind != "attention") return false;
    const std::optional<FusionMatch> match = pattern.match(attention);
    return match.has_value() && (!pattern.worth || pattern.worth(*match));
  });
}

void join(Graph& graph, Node* attention, const std::vector<Projection>& projections) {
  const InsertionPoint here(graph, attention);
  std::vector<Value*> weights;
  std::vector<Value*> biases;
  std::vector<int64_t> columns;
  for (const Projection& projection : projections) {
    weights.push_back(projection.weight());
    biases.push_back(projection.bias);
    columns.push_back(projection.columns());
  }
  const Projection& first = projections.front();
  Value* result = ops::matmul(first.source(), ops::concat(weights, first.axis()),
                              {.transpose_a = false, .transpose_b = first.axis() == 0});
  if (first.bias != nullptr) result = ops::add(result, ops::concat(biases, 0));
  const std::vector<Value*> parts =
      ops::split(result, columns, static_cast<int64_t>(result->shape().size()) - 1);
  for (size_t i = 0; i < projections.size(); ++i) {
    const std::vector<Node*>& moves = projections[i].moves;
    Value* moved = parts[i];
    for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
      ValueMapping mapping{{(*move)->input(0), moved}};
      moved = copy_node(**move, graph, mapping)->output();
    }
    graph.set_input(attention, projections[i].place, moved);
  }
}

}  // namespace

bool join_products(Graph& graph, const PassContext& context) {
  std::vector<Node*> attentions = nodes_of(graph, "attention");
  std::erase_if(attentions,
                [&](Node* node) { return !reads_moved_operands(*node, context.target.patterns); });
  if (attentions.empty()) return false;
  const Settled settled = settled_values(graph, context.options.frozen);
  bool changed = false;
  for (Node* attention : attentions) {
    const std::vector<Projection> projections = projections_of(*attention, settled);
    if (projections.size() < 2) continue;
    join(graph, attention, projections);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
