#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

// The examples of the schemas, in every type that the loops know, and images with whole vectors of channels.
class Pooling : public ::testing::TestWithParam<std::tuple<std::string, DataType>> {
 protected:
  void check(std::vector<ExampleInput> inputs, const Attributes& attributes) const {
    const auto& [operator_name, type] = GetParam();
    if (inputs[0].data_type != DataType::fp32) return;
    inputs[0].data_type = type;
    Graph graph;
    std::vector<Value*> values;
    std::vector<Tensor> tensors;
    for (const ExampleInput& input : inputs) {
      values.push_back(graph.add_input(InputRole::input, "x" + std::to_string(values.size()),
                                       {input.data_type, to_symbolic(input.shape)}));
      tensors.push_back(
          random_tensor(input.data_type, input.shape, input.low, input.high, 7 + values.size()));
    }
    const Node* node = graph.add_node(operator_name, values, attributes);
    const int64_t terms = element_count(attributes.integers("window"));
    const Tolerance tolerance = operator_name == "max_pool"
                                    ? Tolerance{}
                                    : tolerance_for(OperatorClass::pooling, type, {.terms = terms});
    expect_every_kernel(*node, tensors, {tolerance, {}}, std::vector<bool>(inputs.size(), false));
  }
};

TEST_P(Pooling, Examples) {
  const OperatorSchema& schema = OperatorRegistry::instance().get(std::get<0>(GetParam()));
  for (const OperatorExample& example : schema.examples) check(example.inputs, example.attributes);
}

TEST_P(Pooling, ManyChannels) {
  const std::string& name = std::get<0>(GetParam());
  const Shape x{2, 12, 11, 70};
  const Shape y{2, 6, 6, 70};
  Attributes attributes{
      {"window", {3, 3}}, {"strides", {2, 2}}, {"padding_low", {1, 1}}, {"padding_high", {1, 1}}};
  std::vector<ExampleInput> inputs{{.shape = name.ends_with("gradient") ? y : x}};
  if (name.ends_with("gradient")) attributes.set("input_shape", to_symbolic(x));
  if (name == "max_pool_gradient") inputs.push_back({y, 0, 8, DataType::uint8});
  check(inputs, attributes);
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, Pooling,
                         ::testing::Combine(::testing::Values("max_pool", "max_pool_gradient", "average_pool",
                                                              "average_pool_gradient"),
                                            ::testing::Values(DataType::fp32, DataType::bf16,
                                                              DataType::fp16)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

TEST(MaxPool, TakesNaNAsLargest) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {1, 1, 4, 1}});
  const Node* node = graph.add_node(
      "max_pool", {x},
      {{"window", {1, 2}}, {"strides", {1, 2}}, {"padding_low", {0, 0}}, {"padding_high", {0, 0}}});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_every_kernel(*node, {Tensor::from<float>({1, 1, 4, 1}, {1, nan, nan, 2})}, {{}, {}}, {false});
}

}  // namespace
}  // namespace tessera::testing
