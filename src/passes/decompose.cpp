#include "tessera/passes/decompose.h"

#include "tessera/graph/operator.h"

namespace tessera {

void decompose(Graph& graph, Node* node) {
  expand(graph, node, [](const Node& composite, const std::vector<Value*>& inputs) {
    return composite.schema().decompose(composite, inputs);
  });
}

void expand(Graph& graph, Node* node, const GraphRule& rule) {
  const InsertionPoint here(graph, node);
  graph.set_name_scope(node->name());
  const std::vector<Value*> parts = rule(*node, node->inputs());
  graph.set_name_scope("");
  const std::string name = node->name();
  for (size_t i = 0; i < parts.size(); ++i) graph.replace_all_uses(node->output(i), parts[i]);
  graph.erase(node);
  if (parts.size() == 1 && parts[0]->producer() != nullptr && graph.find(name) == nullptr) {
    graph.rename(parts[0], name);
  }
}

void expand(Graph& graph, Node* node, const Graph& body) {
  expand(graph, node, [&](const Node&, const std::vector<Value*>& inputs) {
    ValueMapping mapping;
    for (const auto& input : body.inputs()) mapping[input.get()] = inputs.at(input->index());
    for (const auto& part : body.nodes()) {
      for (const auto& output : copy_node(*part, graph, mapping)->outputs()) {
        const std::string name = node->name() + "/" + output->name();
        if (graph.find(name) == nullptr) graph.rename(output.get(), name);
      }
    }
    std::vector<Value*> outputs;
    for (const Graph::Output& output : body.outputs()) outputs.push_back(mapping.at(output.value));
    return outputs;
  });
}

bool decompose_composites(Graph& graph, const std::function<bool(const OperatorSchema& schema)>& stays) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
      Node* node = (position++)->get();
      if (!node->schema().decompose || (stays && stays(node->schema()))) continue;
      decompose(graph, node);
      again = changed = true;
    }
  }
  return changed;
}

}  // namespace tessera
