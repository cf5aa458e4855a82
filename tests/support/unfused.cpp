#include "support/unfused.h"

#include <cctype>
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
  const Node* copy = graph->add_node(node.operator_name(), node.operands(inputs), node.attributes());
  for (const auto& output : copy->outputs()) graph->add_output(output->name(), output.get());
  return graph;
}

namespace {

// fp32 in place of the words fp16 and bf16, which are as long.
std::string with_wide_types(std::string text) {
  const auto in_word = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (const std::string_view narrow : {"fp16", "bf16"}) {
    for (size_t at = text.find(narrow); at != std::string::npos; at = text.find(narrow, at + 1)) {
      if ((at == 0 || !in_word(at - 1)) && !in_word(at + narrow.size()))
        text.replace(at, narrow.size(), "fp32");
    }
  }
  return text;
}

}  // namespace

std::unique_ptr<Graph> widened(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->operator_name().starts_with("random_")) return nullptr;
  }
  const std::string text = print(graph);
  const std::string wide = with_wide_types(text);
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
