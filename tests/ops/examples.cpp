#include "ops/examples.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/random.h"

namespace tessera::testing {
namespace {

constexpr uint64_t kInputsPerExample = 64;

ExampleGraph build(const OperatorSchema& schema, size_t index, const std::vector<DataType>& types) {
  const OperatorExample& example = schema.examples[index];
  ExampleGraph result{
      .graph = std::make_unique<Graph>(schema.name), .inputs = {}, .tensors = {}, .label = {}};
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& input = example.inputs[i];
    result.inputs.push_back(result.graph->add_input(InputRole::input, "input" + std::to_string(i),
                                                    {types[i], to_symbolic(input.shape)}));
    const uint64_t stream = hash_name(schema.name.data(), schema.name.size()) + index * kInputsPerExample + i;
    result.tensors.push_back(random_tensor(types[i], input.shape, input.low, input.high, stream));
    result.label += (i == 0 ? "" : ", ") + to_string(result.inputs.back()->type());
  }
  result.node = result.graph->add_node(schema.name, result.inputs, example.attributes);
  for (const auto& output : result.node->outputs()) {
    result.graph->add_output(output->name(), output.get());
  }
  result.label = fmt::format("{} example {} ({})", schema.name, index, result.label);
  return result;
}

}  // namespace

ExampleGraph make_example(const OperatorSchema& schema, size_t index) {
  std::vector<DataType> types;
  for (const ExampleInput& input : schema.examples[index].inputs) types.push_back(input.data_type);
  return build(schema, index, types);
}

std::optional<ExampleGraph> make_example(const OperatorSchema& schema, size_t index, DataType floating) {
  std::vector<DataType> types;
  bool changed = false;
  for (const ExampleInput& input : schema.examples[index].inputs) {
    const bool fits = is_floating(input.data_type) && schema.operand(types.size()).types.contains(floating);
    types.push_back(fits ? floating : input.data_type);
    changed |= fits;
  }
  if (!changed) return std::nullopt;
  return build(schema, index, types);
}

std::vector<ExampleGraph> all_types(const OperatorSchema& schema, size_t index) {
  std::vector<ExampleGraph> result;
  for (const DataType type : {DataType::fp32, DataType::fp64, DataType::fp16, DataType::bf16}) {
    if (auto example = make_example(schema, index, type)) result.push_back(std::move(*example));
  }
  if (result.empty()) result.push_back(make_example(schema, index));
  return result;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) names.push_back(schema->name);
  return names;
}

std::vector<Tensor> run_operator(const std::string& name, const std::vector<Tensor>& inputs,
                                 const Attributes& attributes) {
  Graph graph(name);
  std::vector<Value*> values;
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) {
    values.push_back(graph.add_input(InputRole::input, "input" + std::to_string(values.size()),
                                     {input.data_type(), to_symbolic(input.shape())}));
    pointers.push_back(&input);
  }
  return run_reference(*graph.add_node(name, values, attributes), pointers);
}

bool all_finite(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace tessera::testing
