// Every operator's examples as cases, in every type that its schema allows: derived from the registry.
#pragma once

#include <algorithm>

#include "support/decisive_inputs.h"
#include "support/device_case.h"

namespace tessera::testing {

// The example with `type` in place of its fp32 inputs where they may have it; nothing where that changes
// nothing or is not legal.
inline std::optional<Case> make_case(const OperatorSchema& schema, const OperatorExample& example,
                                     DataType type) {
  Case result;
  result.name = schema.name + " " + std::string(to_string(type));
  result.graph = std::make_unique<Graph>(schema.name);
  std::vector<Value*> values;
  bool changed = example.inputs.empty();
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& input = example.inputs[i];
    const InputSpecification& specification = schema.operand(i);
    // Complex numbers are only moved, which tests of their own look at.
    const bool replaces =
        input.data_type == DataType::fp32 && specification.types.contains(type) && !is_complex(type);
    const DataType own = replaces ? type : input.data_type;
    changed |= own != input.data_type;
    values.push_back(
        result.graph->add_input(InputRole::input, fmt::format("x{}", i), {own, to_symbolic(input.shape)}));
    Tensor tensor = random_tensor(own, input.shape, input.low, input.high, i + 1);
    // Of few whole numbers from -1 to 1 all may be 0, which is right without being computed.
    constexpr int64_t kFew = 16;
    for (int64_t e = 0; replaces && !is_floating(own) && tensor.size() <= kFew && e < tensor.size(); ++e) {
      if (own != DataType::boolean && tensor.at(e) == 0) tensor.set(e, 2);
    }
    result.inputs.push_back(std::move(tensor));
  }
  if (!changed && type != DataType::fp32) return std::nullopt;
  const Node* node = nullptr;
  try {
    node = result.graph->add_node(schema.name, values, example.attributes);
  } catch (const Error&) {
    if (type == DataType::fp32) throw;
    return std::nullopt;  // types that do not go together
  }
  make_decisive(*node, result.inputs);
  for (const auto& output : node->outputs()) result.graph->add_output(output->name(), output.get());
  return result;
}

// All examples of the operator on the device beside the reference.
inline void expect_examples_as_reference(const std::shared_ptr<Device>& device,
                                         const OperatorSchema& schema) {
  for (const OperatorExample& example : schema.examples) {
    for (DataType type : kAllDataTypes) {
      const std::optional<Case> own = make_case(schema, example, type);
      if (!own.has_value()) continue;
      expect_as_reference(device, *own);
    }
  }
}

}  // namespace tessera::testing
