// Networks whose variables never change: what depends on these alone is computed once.
#include "device_cpu/cpu_case.h"

namespace tessera::testing {
namespace {

void expect_frozen(const std::string& text, int64_t terms) {
  const Case own = text_case(text);
  CompileOptions options;
  options.passes.frozen = true;
  const auto executable = compile(*own.graph, Device::cpu(), options);
  auto variables = std::make_shared<Variables>(Device::cpu());
  std::map<std::string, Tensor> inputs;
  for (size_t i = 0; i < own.inputs.size(); ++i) {
    const Value& input = *own.graph->inputs()[i];
    if (input.role() == InputRole::input) {
      inputs[input.name()] = own.inputs[i];
    } else {
      variables->set(input.name(), own.inputs[i]);
    }
  }
  executable->bind(variables);
  size_t once = 0;
  for (const NodeReport& node : executable->nodes()) once += node.once ? 1 : 0;
  EXPECT_GE(once, 1U);
  const ReferenceResult expected = run_reference(*own.graph, own.inputs);
  const Tolerance tolerance =
      tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = terms, .magnitude = 4});
  expect_close(executable->run(inputs).at("y"), expected.outputs[0], tolerance);
}

// Kernels pack what is frozen when they are prepared, which those that run once are not.
TEST(Frozen, ProductsOfParameters) {
  expect_frozen(R"(graph g(parameter %a: fp32[70, 50], parameter %b: fp32[50, 80], input %x: fp32[70, 80]) {
    %c = matmul(%a, %b)
    %y = subtract(%x, %c)
    output y = %y
  })",
                50);
}

TEST(Frozen, ConvolutionsOfParameters) {
  expect_frozen(
      R"(graph g(parameter %a: fp32[1, 9, 9, 16], parameter %w: fp32[32, 3, 3, 16], input %x: fp32[32]) {
    %c = convolution(%a, %w) {dilations = [1, 1], padding_high = [1, 1], padding_low = [1, 1], strides = [1, 1]}
    %y = subtract(%x, %c)
    output y = %y
  })",
      144);
}

}  // namespace
}  // namespace tessera::testing
