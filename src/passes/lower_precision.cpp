// Mixed precision: matrix products and convolutions take and make 16-bit values, and what lies between them
// stays in 16 bit: sums, activations, dropout, what is normalized and its gradient, the logits of a loss.
// Reductions, statistics, losses, master weights and updates stay fp32 (Micikevicius et al. 2018).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

class PrecisionLowering {
 public:
  PrecisionLowering(Graph& graph, DataType type) : graph_(graph), type_(type) {}

  bool run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    bool changed = false;
    for (Node* node : nodes) {
      const LowPrecision wanted = node->schema().low_precision();
      const bool lowers =
          wanted == LowPrecision::narrow ||
          (wanted == LowPrecision::follows &&
           (all_low(*node) || normalizes_for_products(*node) || is_gradient_of_low_norm(*node)));
      if (lowers && has_fp32_data(*node)) {
        lower(*node);
        changed = true;
      }
    }
    return changed;
  }

 private:
  // Operands that take the low type: those that share the type variable of the first floating one.
  static bool takes_low(const Node& node, size_t index) {
    if (node.input(index)->data_type() != DataType::fp32) return false;
    size_t first = 0;
    while (!is_floating(node.input(first)->data_type())) ++first;
    return node.specification(index).type_variable == node.specification(first).type_variable;
  }

  static bool has_fp32_data(const Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (takes_low(node, i)) return true;
    }
    return false;
  }

  // Scalars, what repeats one, such as the gradient of what nobody reads, vectors such as biases, and what
  // the node broadcasts, such as the gradient of a mean.
  static bool is_small(const Node& node, const Value* value) {
    const Node* producer = value->producer();
    const bool repeats = producer != nullptr && producer->operator_name() == "broadcast_to" &&
                         producer->input(0)->shape().empty();
    return repeats || value->shape().size() <= 1 ||
           (node.schema().operator_class == OperatorClass::elementwise &&
            value->shape() != node.output()->shape());
  }

  // A weight that some product reads in 16 bit does not count by itself: its update stays wide.
  bool all_low(const Node& node) const {
    bool any = false;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      any = any || made_low_.contains(node.input(i));
      if (!takes_low(node, i) || made_low_.contains(node.input(i))) continue;
      if (!low_.contains(node.input(i)) && !is_small(node, node.input(i))) return false;
    }
    return any;
  }

  // Whether products read the value, or what followers make of it alone.
  static bool feeds_product(const Value* value) {
    return std::any_of(value->uses().begin(), value->uses().end(), [](const Use& use) {
      if (!takes_low(*use.node, use.index)) return false;
      const LowPrecision wanted = use.node->schema().low_precision();
      if (wanted == LowPrecision::narrow) return true;
      return wanted == LowPrecision::follows && use.node->outputs().size() == 1 && data_of(*use.node) == 1 &&
             feeds_product(use.node->output());
    });
  }

  // What was given to the network, in an order of its own perhaps: it may have any range. Of what is joined,
  // all parts or at least one.
  enum class Parts { all, one };
  static bool is_given(const Value* value, Parts parts) {
    const Node* producer = value->producer();
    if (producer == nullptr) return true;
    const bool moves = producer->schema().operator_class == OperatorClass::movement;
    if (!moves && producer->operator_name() != "cast") return false;
    const auto given = [&](const Value* part) { return is_given(part, parts); };
    return parts == Parts::all ? std::ranges::all_of(producer->inputs(), given)
                               : std::ranges::any_of(producer->inputs(), given);
  }

  static int64_t data_of(const Node& node) {
    int64_t count = 0;
    for (size_t i = 0; i < node.inputs().size(); ++i) count += takes_low(node, i) ? 1 : 0;
    return count;
  }

  // A network may begin with sums that no product made, such as those of embeddings. They are rounded where
  // the first normalization reads them, so that all that is added to them later is in 16 bits too.
  static bool normalizes_for_products(const Node& node) {
    return node.schema().operator_class == OperatorClass::normalization && data_of(node) == 1 &&
           !is_given(node.input(0), Parts::one) && feeds_product(node.output());
  }

  // What a norm made in 16 bits has a gradient in 16 bits, whatever that is summed from: rows that a loss
  // picked are added up in fp32, and else the gradients of all residual sums before them would stay there. It
  // has the norm's statistics.
  bool is_gradient_of_low_norm(const Node& node) const {
    const auto is_low_norm = [&](const Node* producer) {
      return producer != nullptr && producer->schema().operator_class == OperatorClass::normalization &&
             producer->output()->data_type() == type_;
    };
    return node.schema().operator_class == OperatorClass::normalization && data_of(node) == 2 &&
           std::any_of(node.inputs().begin(), node.inputs().end(),
                       [&](const Value* value) { return is_low_norm(value->producer()); });
  }

  // Before a view, where what computes the value rounds it itself.
  Value* lowered(Value* value) {
    const auto known = low_.find(value);
    if (known != low_.end()) return known->second;
    const Node* producer = value->producer();
    const bool views = producer != nullptr && producer->schema().traits.view && !is_given(value, Parts::all);
    Value* low = views ? graph_
                             .add_node(producer->operator_name(), {lowered(producer->input(0))},
                                       producer->attributes(), producer->name())
                             ->output()
                       : ops::cast(value, type_);
    low_[value] = low;
    return low;
  }

  void lower(Node& node) {
    const InsertionPoint here(graph_, &node);
    std::vector<Value*> inputs;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      inputs.push_back(takes_low(node, i) ? lowered(node.input(i)) : node.input(i));
    }
    Node* low = graph_.add_node(node.operator_name(), node.operands(inputs), node.attributes(), node.name());
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      Value* result = low->output(i);
      if (result->type() != node.output(i)->type()) {
        Value* wide = ops::cast(result, node.output(i)->data_type());
        low_[wide] = result;
        made_low_.insert(wide);
        result = wide;
      } else if (result->data_type() == DataType::boolean) {
        made_low_.insert(result);
      }
      graph_.replace_all_uses(node.output(i), result);
    }
    graph_.erase(&node);
  }

  Graph& graph_;
  DataType type_;
  std::unordered_map<Value*, Value*> low_;  // an fp32 value and its 16-bit form
  // fp32 values that are casts of what was made in 16 bit, and masks made of such.
  std::unordered_set<const Value*> made_low_;
};

}  // namespace

bool lower_precision(Graph& graph, const PassContext& context) {
  const std::optional<DataType> type = lowered_type(context.options.precision);
  return type.has_value() && PrecisionLowering(graph, *type).run();
}

}  // namespace tessera::passes
