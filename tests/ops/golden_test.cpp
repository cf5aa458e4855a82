// Values and gradients of the operators against PyTorch's, which tests/golden/operators.py wrote to
// golden.json.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "support/compare.h"
#include "test_folder.h"

namespace tessera::testing {
namespace {

using Json = nlohmann::json;

constexpr int64_t kGradientSeed = 100;
// The file has ten digits; PyTorch and we both compute in double.
constexpr Tolerance kTenDigits{.absolute = 1e-9, .relative = 1e-9};

// low + (high - low) * ((i * 7919 + seed * 104729) mod 1009) / 1009
Tensor golden_values(const Shape& shape, int64_t seed, double low = -1, double high = 1) {
  Tensor result(DataType::fp64, shape);
  for (int64_t i = 0; i < result.size(); ++i)
    result.set(i, low + (high - low) * static_cast<double>((i * 7919 + seed * 104729) % 1009) / 1009);
  return result;
}

Tensor tensor_of(const Json& input) {
  const auto shape = input.at("shape").get<Shape>();
  if (!input.contains("values"))
    return golden_values(shape, input.at("seed"), input.at("low"), input.at("high"));
  return Tensor::from_doubles(parse_data_type(input.at("type").get<std::string>()), shape,
                              input.at("values").get<std::vector<double>>());
}

Attributes attributes_of(const Json& attributes) {
  Attributes result;
  for (const auto& [name, value] : attributes.items()) {
    if (value.is_boolean()) {
      result.set(name, value.get<bool>());
    } else if (value.is_array()) {
      result.set(name, value.get<std::vector<int64_t>>());
    } else if (value.is_number_integer()) {
      result.set(name, value.get<int64_t>());
    } else {
      result.set(name, value.get<double>());
    }
  }
  return result;
}

void check(const Json& golden) {
  Graph graph;
  std::vector<Value*> inputs;
  std::vector<Value*> sources;
  std::vector<Tensor> tensors;
  for (const Json& input : golden.at("inputs")) {
    tensors.push_back(tensor_of(input));
    inputs.push_back(graph.add_input(InputRole::input, "input" + std::to_string(inputs.size()),
                                     {tensors.back().data_type(), to_symbolic(tensors.back().shape())}));
    if (is_floating(tensors.back().data_type())) sources.push_back(inputs.back());
  }
  const auto shape = golden.at("shape").get<Shape>();
  Value* y = ops::apply(golden.at("operator"), inputs, attributes_of(golden.at("attributes")))->output();
  ASSERT_EQ(y->shape(), to_symbolic(shape));
  graph.add_output("y", y);
  Value* loss = ops::reduce_sum(ops::multiply(y, ops::constant(graph, golden_values(shape, kGradientSeed))));
  for (Value* gradient : differentiate(graph, loss, sources)) graph.add_output("gradient", gradient);
  verify(graph);

  const std::vector<Tensor> results = run_reference(graph, tensors).outputs;
  expect_close(results[0], golden.at("y").get<std::vector<double>>(), kTenDigits, "the value");
  size_t next = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_floating(inputs[i]->data_type())) continue;
    const auto expected = golden.at("gradients").at(i).get<std::vector<double>>();
    expect_close(results[next++], expected, kTenDigits, "the gradient to input " + std::to_string(i));
  }
}

TEST(GoldenOperators, AgreeWithPyTorch) {
  std::ifstream file(TESSERA_TEST_FOLDER "/golden.json");
  ASSERT_TRUE(file.is_open());
  const Json cases = Json::parse(file);
  EXPECT_GE(cases.size(), 25U);
  for (const Json& golden : cases) {
    SCOPED_TRACE(golden.at("operator").get<std::string>() + ": " + golden.at("name").get<std::string>());
    check(golden);
  }
}

}  // namespace
}  // namespace tessera::testing
