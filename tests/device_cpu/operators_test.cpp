// Every operator's examples, in every type that its schema allows, on the CPU beside the reference. Derived
// from the registry: a new operator is tested as soon as it has examples.
#include <set>

#include "device_cpu/cpu_case.h"

namespace tessera::testing {
namespace {

// The example with `type` in place of its fp32 inputs where they may have it; nothing where that changes
// nothing or is not legal.
std::optional<Case> make_case(const OperatorSchema& schema, const OperatorExample& example, DataType type) {
  Case result;
  result.name = schema.name + " " + std::string(to_string(type));
  result.graph = std::make_unique<Graph>(schema.name);
  std::vector<Value*> values;
  bool changed = example.inputs.empty();
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& input = example.inputs[i];
    const InputSpecification& specification = schema.inputs[std::min(i, schema.inputs.size() - 1)];
    const bool replaces = input.data_type == DataType::fp32 && specification.types.contains(type);
    const DataType own = replaces ? type : input.data_type;
    changed |= own != input.data_type;
    values.push_back(
        result.graph->add_input(InputRole::input, fmt::format("x{}", i), {own, to_symbolic(input.shape)}));
    result.inputs.push_back(random_tensor(own, input.shape, input.low, input.high, i + 1));
  }
  if (!changed && type != DataType::fp32) return std::nullopt;
  const Node* node = nullptr;
  try {
    node = result.graph->add_node(schema.name, values, example.attributes);
  } catch (const Error&) {
    if (type == DataType::fp32) throw;
    return std::nullopt;  // types that do not go together
  }
  for (const auto& output : node->outputs()) result.graph->add_output(output->name(), output.get());
  return result;
}

// No result sums more terms than there are elements in all inputs.
Problem problem_of(const Case& own) {
  Problem problem{.terms = 1, .magnitude = 1};
  for (const Tensor& input : own.inputs) {
    problem.terms = std::max(problem.terms, input.size());
    for (double value : input.to_doubles()) problem.magnitude = std::max(problem.magnitude, std::abs(value));
  }
  return problem;
}

class Operators : public ::testing::TestWithParam<const OperatorSchema*> {};

TEST_P(Operators, ExamplesAsReference) {
  const OperatorSchema& schema = *GetParam();
  for (const OperatorExample& example : schema.examples) {
    for (DataType type : kAllDataTypes) {
      const std::optional<Case> own = make_case(schema, example, type);
      if (!own.has_value()) continue;
      const bool rounds_once = schema.decompose && is_floating(type) && size_of(type) == 2;
      const std::optional<Case> wide =
          rounds_once ? make_case(schema, example, DataType::fp32) : std::nullopt;
      expect_as_reference(*own, schema.operator_class, problem_of(*own), false,
                          wide.has_value() ? &*wide : nullptr);
    }
  }
}

// The first example runs on a kernel of the CPU's own, in fp32.
TEST_P(Operators, HaveAKernel) {
  const OperatorSchema& schema = *GetParam();
  if (schema.examples.empty()) GTEST_SKIP() << "no examples";
  // Sources run once, at compile time; the transposed convolution waits for its loop.
  static const std::set<std::string> kOnReference = {"constant", "count_elements", "iota",
                                                     "transposed_convolution"};
  if (kOnReference.contains(schema.name)) GTEST_SKIP() << "on the reference";
  const std::optional<Case> own = make_case(schema, schema.examples.front(), DataType::fp32);
  ASSERT_TRUE(own.has_value());
  for (const std::string& kernel : run_on_cpu(*own).kernels) EXPECT_NE(kernel, "reference");
}

INSTANTIATE_TEST_SUITE_P(Registry, Operators, ::testing::ValuesIn(OperatorRegistry::instance().all()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace tessera::testing
