// Removes the transposes that channels-first code puts around channels-last operators.
//
// Operators that know no layout (elementwise, reductions, concat, ...) may run on values whose axes lie in
// another order. For one order at a time, each such operator either stays or works in that order; a value
// that is made on one side and read on the other takes a transpose. The cheapest choice is a minimum cut, so
// that transposes move, up or down, exactly as far as they meet others or smaller values, and never at a
// loss. Dropout stays: its random numbers belong to places in memory, in the forward half as in the gradient.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/settled_values.h"

#include "passes/axis_order.h"
#include "passes/minimum_cut.h"
#include "passes/passes.h"
#include "passes/permutation.h"

namespace tessera::passes {
namespace {

bool is_transpose(const Node* node, const Permutation& permutation) {
  return node != nullptr && node->operator_name() == "transpose" &&
         node->attributes().integers("permutation") == permutation;
}

// Which nodes should work in `order`.
class OrderChoice {
 public:
  OrderChoice(const Graph& graph, const Permutation& order, bool frozen)
      : graph_(graph),
        order_(order),
        inverse_(inverse_permutation(order)),
        settled_(settled_values(graph, frozen)) {}

  // In graph order; empty when the graph cannot be made cheaper.
  std::vector<Node*> choose() {
    for (const auto& node : graph_.nodes()) {
      if (works_in_any_order(*node, order_.size())) vertices_.emplace(node.get(), cut_.add_vertex());
    }
    find_sources();
    for (const auto& input : graph_.inputs()) add_value(*input);
    for (const auto& node : graph_.nodes()) {
      add_adaptations(*node);
      for (const auto& output : node->outputs()) add_value(*output);
    }
    if (present_cost_ == 0 || cut_.solve() == present_cost_) return {};
    const std::vector<bool> moved = cut_.sink_side();
    std::vector<Node*> result;
    for (const auto& node : graph_.nodes()) {
      const auto vertex = vertices_.find(node.get());
      if (vertex != vertices_.end() && moved[vertex->second]) result.push_back(node.get());
    }
    return result;
  }

 private:
  using Vertex = MinimumCut::Vertex;

  // Which transposes lead into the order; those of the inverse permutation lead out of it. Where the two are
  // the same permutation, transposes along a path lead in and out by turns.
  void find_sources() {
    std::unordered_set<const Value*> inside;
    for (const auto& node : graph_.nodes()) {
      const bool from_inside = std::any_of(node->inputs().begin(), node->inputs().end(),
                                           [&](const Value* input) { return inside.contains(input); });
      const bool is_source =
          is_transpose(node.get(), order_) && !(is_transpose(node.get(), inverse_) && from_inside);
      if (is_source) sources_.insert(node.get());
      if (!is_source && !(from_inside && vertices_.contains(node.get()))) continue;
      for (const auto& output : node->outputs()) inside.insert(output.get());
    }
  }

  Vertex vertex_of(const Node* node) const {
    const auto found = vertices_.find(node);
    return found == vertices_.end() ? MinimumCut::kSource : found->second;
  }

  Vertex maker(const Value& value) const {
    // What a transpose makes is there in the order, as the transpose's input.
    return sources_.contains(value.producer()) ? MinimumCut::kSink : vertex_of(value.producer());
  }

  std::vector<Vertex> readers(const Value& value) const {
    std::vector<Vertex> result;
    for (const Use& use : value.uses()) {
      if (is_transpose(use.node, inverse_) && !sources_.contains(use.node)) {
        result.push_back(MinimumCut::kSink);
      } else if (!vertices_.contains(use.node) || follows_order(*use.node, use.index, order_.size())) {
        result.push_back(vertex_of(use.node));
      }
    }
    if (value.is_output_or_update()) result.push_back(MinimumCut::kSource);
    return result;
  }

  int64_t bytes(const Value& value) const { return settled_.contains(&value) ? 0 : value.type().bytes(); }

  // However many read the value on the other side of the cut, it is transposed once.
  void add_value(const Value& value) {
    if (value.shape().size() != order_.size() || moves_nothing(value.shape(), inverse_)) return;
    const int64_t cost = bytes(value);
    const std::vector<Vertex> read_by = readers(value);
    if (cost == 0 || read_by.empty()) return;
    const Vertex made_by = maker(value);
    const Vertex reordered = cut_.add_vertex();  // on the sink's side when a reader is
    const Vertex original = cut_.add_vertex();   // on the source's side when a reader is
    cut_.add_edge(made_by, reordered, cost);
    cut_.add_edge(original, made_by, cost);
    for (Vertex reader : read_by) {
      cut_.add_edge(reordered, reader, MinimumCut::kUnbounded);
      cut_.add_edge(reader, original, MinimumCut::kUnbounded);
    }
    const bool is_made_in_order = made_by == MinimumCut::kSink;
    const bool is_transposed = std::any_of(read_by.begin(), read_by.end(), [&](Vertex reader) {
      return (reader == MinimumCut::kSink) != is_made_in_order;
    });
    if (is_transposed) present_cost_ += cost;
  }

  // What the node's small operands and results cost when it works in the order.
  void add_adaptations(const Node& node) {
    const Vertex vertex = vertex_of(&node);
    if (vertex == MinimumCut::kSource) return;
    int64_t cost = 0;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Value& input = *node.input(i);
      if (!follows_order(node, i, order_.size()) && operand_moves(node, i, order_)) cost += bytes(input);
    }
    const Value& output = *node.output();
    if (output.shape().size() != order_.size() &&
        !moves_nothing(output.shape(), inverse_permutation(result_order(node, order_)))) {
      cost += bytes(output);
    }
    if (cost > 0) cut_.add_edge(MinimumCut::kSource, vertex, cost);
  }

  const Graph& graph_;
  const Permutation& order_;
  const Permutation inverse_;
  const std::unordered_set<const Value*> settled_;  // transposing them costs nothing
  MinimumCut cut_;
  std::unordered_map<const Node*, Vertex> vertices_;
  NodeSet sources_;
  int64_t present_cost_ = 0;  // bytes that transposes to and from the order write
};

// Makes nodes work in `order`. Their results are transposed back; simplification removes that where readers
// work in the order too.
class Reordering {
 public:
  Reordering(Graph& graph, const Permutation& order) : graph_(graph), order_(order) {}

  void apply(Node* node) {
    const InsertionPoint here(graph_, node);
    std::vector<Value*> inputs;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      Value* input = node->input(i);
      inputs.push_back(follows_order(*node, i, order_.size()) ? stored(input)
                                                              : reordered_operand(*node, i, order_));
    }
    Node* reordered = graph_.add_node(node->operator_name(), node->operands(inputs),
                                      reordered_attributes(*node, order_), node->name());
    const Permutation results = result_order(*node, order_);
    std::vector<std::string> names;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      Value* original = permuted(reordered->output(i), results);
      stored_[original] = reordered->output(i);
      names.push_back(node->output(i)->name());
      graph_.replace_all_uses(node->output(i), original);
    }
    graph_.erase(node);
    for (size_t i = 0; i < names.size(); ++i) graph_.rename(reordered->output(i), names[i]);
  }

 private:
  Value* stored(Value* value) {
    if (is_transpose(value->producer(), order_)) return value->producer()->input(0);
    Value*& result = stored_[value];
    if (result == nullptr) result = permuted(value, inverse_permutation(order_));
    return result;
  }

  Graph& graph_;
  const Permutation& order_;
  std::unordered_map<const Value*, Value*> stored_;
};

// Transposes of transposes, transposes that move nothing, and those that are there already.
bool simplify_transposes(Graph& graph) {
  bool changed = false;
  std::map<std::pair<const Value*, Permutation>, Value*> known;
  for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
    Node* node = (position++)->get();
    if (node->operator_name() != "transpose") continue;
    const InsertionPoint here(graph, node);
    Value* result = simpler_transpose(*node);
    if (result == nullptr) result = node->output();
    if (const Node* transpose = producer_of(result, "transpose")) {
      result =
          known.try_emplace({transpose->input(0), transpose->attributes().integers("permutation")}, result)
              .first->second;
    }
    if (result == node->output()) continue;
    graph.replace_all_uses(node->output(), result);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

bool settle_order(Graph& graph, const Permutation& order, const PassContext& context) {
  const std::vector<Node*> nodes = OrderChoice(graph, order, context.options.frozen).choose();
  Reordering reordering(graph, order);
  for (Node* node : nodes) reordering.apply(node);
  return !nodes.empty();
}

std::vector<Permutation> permutations_of(const Graph& graph) {
  std::vector<Permutation> result;
  for (const auto& node : graph.nodes()) {
    if (node->operator_name() != "transpose") continue;
    const Permutation& permutation = node->attributes().integers("permutation");
    if (std::find(result.begin(), result.end(), permutation) == result.end()) result.push_back(permutation);
  }
  return result;
}

}  // namespace

bool settle_layout(Graph& graph, const PassContext& context) {
  if (!free_symbols(graph).empty()) return false;  // costs are known once extents are
  bool changed = simplify_transposes(graph);
  if (changed) remove_dead_code(graph, context);
  // Each change makes the graph cheaper, so that this ends.
  for (bool again = true; again;) {
    const std::vector<Permutation> orders = permutations_of(graph);
    again = std::any_of(orders.begin(), orders.end(),
                        [&](const Permutation& order) { return settle_order(graph, order, context); });
    if (!again) break;
    simplify_transposes(graph);
    remove_dead_code(graph, context);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
