#include "tessera/passes/differentiate.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera {
namespace {

using ValueSet = std::unordered_set<const Value*>;

bool reads_any(const Node& node, const ValueSet& values) {
  return std::any_of(node.inputs().begin(), node.inputs().end(),
                     [&](const Value* v) { return values.contains(v); });
}

// Values that change when one of the sources changes; constants never do.
ValueSet dependents(const Graph& graph, std::span<Value* const> sources) {
  ValueSet result;
  for (const Value* source : sources) {
    if (source->role() != InputRole::constant) result.insert(source);
  }
  for (const auto& node : graph.nodes()) {
    if (!reads_any(*node, result)) continue;
    for (const auto& output : node->outputs()) result.insert(output.get());
  }
  return result;
}

// Has every reader of a composite without a gradient rule read its parts instead, as often as it takes. The
// composites stay, for the caller may hold their results; `loss` and `sources` follow to the parts.
void expand_composites(Graph& graph, Value*& loss, std::vector<Value*>& sources) {
  for (bool changed = true; changed;) {
    changed = false;
    const ValueSet active = dependents(graph, sources);
    for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
      Node* node = (position++)->get();
      if (node->schema().gradient || !node->schema().decompose || !reads_any(*node, active)) continue;
      const auto& outputs = node->outputs();
      const bool matters = std::any_of(outputs.begin(), outputs.end(), [&](const auto& output) {
        return output.get() == loss || graph.is_used(output.get());
      });
      if (!matters) continue;
      const InsertionPoint here(graph, node);
      graph.set_name_scope(node->name());
      const std::vector<Value*> parts = node->schema().decompose(*node, node->inputs());
      graph.set_name_scope("");
      for (size_t i = 0; i < parts.size(); ++i) {
        if (node->output(i) == loss) loss = parts[i];
        std::replace(sources.begin(), sources.end(), node->output(i), parts[i]);
        graph.replace_all_uses(node->output(i), parts[i]);
      }
      changed = true;
    }
  }
}

}  // namespace

std::vector<Value*> differentiate(Graph& graph, Value* loss, std::span<Value* const> with_respect_to,
                                  Value* loss_gradient) {
  require(loss->shape().empty() && is_floating(loss->data_type()), ErrorCode::invalid_argument,
          "only a floating scalar has a gradient; '{}' is {}", loss->name(), to_string(loss->type()));
  std::vector<Value*> sources(with_respect_to.begin(), with_respect_to.end());
  expand_composites(graph, loss, sources);
  const ValueSet active = dependents(graph, sources);

  std::vector<Node*> backwards;
  for (const auto& node : graph.nodes()) backwards.push_back(node.get());
  std::reverse(backwards.begin(), backwards.end());

  std::unordered_map<const Value*, Value*> gradients;
  gradients[loss] = loss_gradient != nullptr ? loss_gradient : ops::constant_like(loss, 1);
  for (Node* node : backwards) {
    std::vector<Value*> output_gradients;
    for (const auto& output : node->outputs()) {
      const auto found = gradients.find(output.get());
      output_gradients.push_back(found == gradients.end() ? nullptr : found->second);
    }
    const bool reached =
        std::any_of(output_gradients.begin(), output_gradients.end(), [](Value* g) { return g != nullptr; });
    if (!reached || !reads_any(*node, active)) continue;
    require(static_cast<bool>(node->schema().gradient), ErrorCode::invalid_argument,
            "operator '{}' of node '{}' has no gradient", node->operator_name(), node->name());
    graph.set_name_scope(node->name() + ".gradient");
    const std::vector<Value*> input_gradients = node->schema().gradient({*node, output_gradients});
    require(input_gradients.size() == node->inputs().size(), ErrorCode::internal,
            "the gradient rule of '{}' gives {} gradients for {} inputs", node->operator_name(),
            input_gradients.size(), node->inputs().size());
    for (size_t i = 0; i < input_gradients.size(); ++i) {
      Value* gradient = input_gradients[i];
      if (gradient == nullptr || !active.contains(node->input(i))) continue;
      require(gradient->type() == node->input(i)->type(), ErrorCode::internal,
              "the gradient rule of '{}' gives {} for input {} of {}", node->operator_name(),
              to_string(gradient->type()), i, to_string(node->input(i)->type()));
      Value*& sum = gradients[node->input(i)];
      sum = sum == nullptr ? gradient : ops::add(sum, gradient);
    }
  }
  graph.set_name_scope("");

  std::vector<Value*> result;
  for (Value* value : sources) {
    const auto found = gradients.find(value);
    result.push_back(found == gradients.end() ? ops::zeros_like(value) : found->second);
  }
  return result;
}

}  // namespace tessera
