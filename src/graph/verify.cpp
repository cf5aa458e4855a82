#include <algorithm>
#include <unordered_set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/operator.h"

#include "graph/initial_value.h"

namespace tessera {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    for (const auto& input : graph_.inputs()) {
      check(input->producer() == nullptr, "input '{}' has a producer", input->name());
      if (input->initial() != nullptr)
        check_initial_value(input->role(), input->name(), input->type(), *input->initial());
      define(*input);
    }
    for (const auto& node : graph_.nodes()) check_node(*node);
    for (const auto& output : graph_.outputs()) {
      check(known(output.value), "output '{}' is not a value of the graph", output.name);
    }
    check_updates();
    check_uses();
  }

 private:
  template <typename... Arguments>
  void check(bool condition, fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (condition) return;
    fail(ErrorCode::invalid_graph, "graph '{}': {}", graph_.name(),
         fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  bool known(const Value* value) const { return defined_.contains(value); }

  void define(const Value& value) {
    const std::string& name = value.name();
    const bool legal = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '/' || c == '-';
    });
    check(legal, "'{}' is no legal name (letters, digits and _ . / -)", name);
    check(names_.insert(name).second, "the name '{}' is used twice", name);
    check(graph_.find(name) == &value, "'{}' is not what its name finds", name);
    defined_.insert(&value);
  }

  void check_node(const Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Value* input = node.input(i);
      check(known(input), "node '{}' ({}) reads '{}' before it is made", node.name(), node.operator_name(),
            input->name());
      const auto& uses = input->uses();
      check(std::any_of(uses.begin(), uses.end(),
                        [&](const Use& use) { return use.node == &node && use.index == i; }),
            "'{}' does not know that '{}' reads it", input->name(), node.name());
    }
    std::vector<TensorType> types;
    for (const Value* input : node.inputs()) types.push_back(input->type());
    Attributes attributes = node.attributes();
    check(node.places().count() == node.inputs().size(), "node '{}' ({}) has {} inputs, and places for {}",
          node.name(), node.operator_name(), node.inputs().size(), node.places().count());
    const auto inferred =
        infer_outputs(node.schema(), node.name(), {node.places(), types, node.bodies()}, attributes);
    check(attributes == node.attributes(), "node '{}' ({}) lacks default attributes", node.name(),
          node.operator_name());
    check(inferred.size() == node.outputs().size(), "node '{}' ({}) makes {} values, the rule says {}",
          node.name(), node.operator_name(), node.outputs().size(), inferred.size());
    for (size_t i = 0; i < inferred.size(); ++i) {
      check(inferred[i] == node.output(i)->type(), "'{}' is {}, the shape rule of {} says {}",
            node.output(i)->name(), to_string(node.output(i)->type()), node.operator_name(),
            to_string(inferred[i]));
      check(node.output(i)->producer() == &node, "'{}' does not know its producer '{}'",
            node.output(i)->name(), node.name());
      define(*node.output(i));
    }
    for (const auto& body : node.bodies()) verify(*body);
  }

  void check_updates() const {
    std::unordered_set<const Value*> updated;
    for (const auto& update : graph_.updates()) {
      check(known(update.state) && known(update.next), "an update names a value of another graph");
      check(update.state->may_be_updated(), "'{}' is updated but is no parameter or state",
            update.state->name());
      check(update.state->type() == update.next->type(), "'{}' is {}, its update '{}' is {}",
            update.state->name(), to_string(update.state->type()), update.next->name(),
            to_string(update.next->type()));
      check(updated.insert(update.state).second, "'{}' is updated twice", update.state->name());
    }
  }

  void check_uses() const {
    for (const Value* value : defined_) {
      for (const Use& use : value->uses()) {
        check(&use.node->graph() == &graph_ && use.index < use.node->inputs().size() &&
                  use.node->input(use.index) == value,
              "'{}' lists a reader that does not read it", value->name());
      }
    }
  }

  const Graph& graph_;
  std::unordered_set<const Value*> defined_;
  std::unordered_set<std::string> names_;
};

}  // namespace

void verify(const Graph& graph) {
  Verifier(graph).run();
}

}  // namespace tessera
