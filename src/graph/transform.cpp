// Copies of graphs: clone, specialize, and the inlining of one graph into another.
#include "tessera/base/error.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/operator.h"

namespace tessera {
namespace {

Attributes substitute(const Attributes& attributes, const SymbolBindings& bindings) {
  Attributes result = attributes;
  if (bindings.empty()) return result;
  for (const auto& [name, attribute] : attributes.entries()) {
    if (attribute.kind() == AttributeKind::shape) {
      result.set(name, tessera::substitute(attributes.shape(name), bindings));
    }
  }
  return result;
}

Node* copy_node(const Node& node, Graph& target, ValueMapping& mapping, const SymbolBindings& bindings) {
  std::vector<Value*> inputs;
  for (const Value* input : node.inputs()) {
    const auto found = mapping.find(input);
    require(found != mapping.end(), ErrorCode::internal, "copy of '{}' misses its input '{}'", node.name(),
            input->name());
    inputs.push_back(found->second);
  }
  std::vector<std::unique_ptr<Graph>> bodies;
  for (const auto& body : node.bodies()) bodies.push_back(specialize(*body, bindings));
  Node* copy = target.add_node(node.operator_name(), node.operands(inputs),
                               substitute(node.attributes(), bindings), node.name(), std::move(bodies));
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    mapping[node.output(i)] = copy->output(i);
    const std::string& name = node.output(i)->name();
    if (target.find(name) == nullptr) target.rename(copy->output(i), name);
  }
  return copy;
}

}  // namespace

Node* copy_node(const Node& node, Graph& target, ValueMapping& mapping) {
  return copy_node(node, target, mapping, {});
}

void copy_nodes(const Graph& source, Graph& target, ValueMapping& mapping) {
  for (const auto& node : source.nodes()) copy_node(*node, target, mapping, {});
}

std::unique_ptr<Graph> specialize(const Graph& graph, const SymbolBindings& bindings) {
  auto result = std::make_unique<Graph>(graph.name());
  ValueMapping mapping;
  for (const auto& input : graph.inputs()) {
    TensorType type = input->type();
    type.shape = substitute(type.shape, bindings);
    const std::optional<Tensor> initial =
        input->initial() == nullptr ? std::nullopt : std::optional(*input->initial());
    mapping[input.get()] = result->add_input(input->role(), input->name(), std::move(type), initial);
  }
  for (const auto& node : graph.nodes()) copy_node(*node, *result, mapping, bindings);
  for (const auto& output : graph.outputs()) result->add_output(output.name, mapping.at(output.value));
  for (const auto& update : graph.updates())
    result->add_update(mapping.at(update.state), mapping.at(update.next));
  return result;
}

std::unique_ptr<Graph> Graph::clone() const {
  return specialize(*this, {});
}

std::set<std::string> free_symbols(const Graph& graph) {
  std::set<std::string> symbols;
  for (const auto& input : graph.inputs()) {
    for (const Dimension& extent : input->shape()) extent.collect_symbols(symbols);
  }
  return symbols;
}

}  // namespace tessera
