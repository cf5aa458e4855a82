#include "support/unfused.h"

#include <regex>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera::testing {

std::unique_ptr<Graph> unfused(const Node& node) {
  if (node.body() != nullptr) return node.body()->clone();
  auto graph = std::make_unique<Graph>(node.operator_name());
  std::vector<Value*> inputs;
  for (const Value* input : node.inputs()) {
    inputs.push_back(graph->add_input(InputRole::input, "x" + std::to_string(inputs.size()), input->type()));
  }
  const Node* copy = graph->add_node(node.operator_name(), inputs, node.attributes());
  for (const auto& output : copy->outputs()) graph->add_output(output->name(), output.get());
  return graph;
}

std::unique_ptr<Graph> widened(const Graph& graph) {
  static const std::regex kNarrow(R"(\b(fp16|bf16)\b)");
  for (const auto& node : graph.nodes()) {
    if (node->operator_name().starts_with("random_")) return nullptr;
  }
  const std::string text = print(graph);
  const std::string wide = std::regex_replace(text, kNarrow, "fp32");
  if (wide == text) return nullptr;
  try {
    return parse_graph(wide);
  } catch (const Error&) {
    return nullptr;
  }
}

std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs, const OperandOf& operand) {
  std::unordered_map<const Value*, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* input = graph.inputs()[i].get();
    values[input] =
        inputs[i].data_type() == input->data_type() ? inputs[i] : inputs[i].cast(input->data_type());
  }
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor> operands;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Tensor& value = values.at(node->input(i));
      operands.push_back(operand ? operand(*node, i, value) : value);
    }
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : operands) pointers.push_back(&tensor);
    const std::vector<Tensor> results = run_reference(*node, pointers);
    for (size_t i = 0; i < results.size(); ++i) values[node->output(i)] = results[i];
  }
  std::vector<Tensor> outputs;
  for (const auto& output : graph.outputs()) outputs.push_back(values.at(output.value));
  return outputs;
}

}  // namespace tessera::testing
