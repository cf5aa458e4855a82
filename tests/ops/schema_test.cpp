// What every operator must bring, and what every example must do. A new operator is tested by being
// registered.
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/error.h"

#include "ops/examples.h"

namespace tessera::testing {
namespace {

class OperatorTest : public ::testing::TestWithParam<std::string> {
 protected:
  const OperatorSchema& schema() const { return OperatorRegistry::instance().get(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Registry, OperatorTest, ::testing::ValuesIn(operator_names()),
                         [](const auto& info) { return info.param; });

TEST_P(OperatorTest, SchemaIsComplete) {
  EXPECT_GE(schema().documentation.size(), 10u) << "a paragraph of documentation";
  EXPECT_TRUE(schema().documentation.ends_with(".")) << schema().documentation;
  EXPECT_TRUE(static_cast<bool>(schema().infer)) << "a shape rule";
  EXPECT_FALSE(schema().outputs.empty()) << "names of the outputs";
  for (const AttributeSpecification& attribute : schema().attributes) {
    EXPECT_FALSE(attribute.documentation.empty()) << "attribute " << attribute.name;
  }
  // A fused node's meaning is its body, which no example can hold; fused_test.cpp makes some.
  if (schema().operator_class == OperatorClass::fused) return;
  EXPECT_FALSE(schema().examples.empty()) << "examples, which the tests are made from";
  EXPECT_TRUE(schema().reference || schema().scalar || schema().decompose) << "a reference loop";
}

TEST_P(OperatorTest, ExamplesRunInEveryType) {
  for (size_t i = 0; i < schema().examples.size(); ++i) {
    for (const ExampleGraph& example : all_types(schema(), i)) {
      SCOPED_TRACE(example.label);
      verify(*example.graph);
      const ReferenceResult result = run_reference(*example.graph, example.tensors);
      for (size_t output = 0; output < result.outputs.size(); ++output) {
        const TensorType& type = example.node->output(output)->type();
        EXPECT_EQ(result.outputs[output].data_type(), type.data_type);
        EXPECT_EQ(result.outputs[output].shape(), type.static_shape());
        EXPECT_TRUE(all_finite(result.outputs[output]));
      }
    }
  }
}

// The same numbers in fp32 and fp64 differ by rounding only: 2^-24 relative for each step of the loop, of
// which composites and sums of the examples' sizes make some hundreds.
TEST_P(OperatorTest, SinglePrecisionAgreesWithDouble) {
  for (size_t i = 0; i < schema().examples.size(); ++i) {
    const auto single = make_example(schema(), i, DataType::fp32);
    const auto wide = make_example(schema(), i, DataType::fp64);
    if (!single || !wide) continue;
    SCOPED_TRACE(single->label);
    std::vector<Tensor> inputs;
    for (size_t input = 0; input < single->tensors.size(); ++input) {
      inputs.push_back(single->tensors[input].cast(wide->inputs[input]->data_type()));
    }
    const ReferenceResult a = run_reference(*single->graph, single->tensors);
    const ReferenceResult b = run_reference(*wide->graph, inputs);
    for (size_t output = 0; output < a.outputs.size(); ++output) {
      for (int64_t element = 0; element < a.outputs[output].size(); ++element) {
        const double expected = b.outputs[output].at(element);
        ASSERT_NEAR(a.outputs[output].at(element), expected, 3e-5 * (1 + std::abs(expected)))
            << "output " << output << ", element " << element;
      }
    }
  }
}

TEST_P(OperatorTest, TextRoundTripIsExact) {
  for (size_t i = 0; i < schema().examples.size(); ++i) {
    const ExampleGraph example = make_example(schema(), i);
    const std::string text = print(*example.graph);
    EXPECT_EQ(print(*parse_graph(text)), text);
  }
}

TEST_P(OperatorTest, CostsAreCounted) {
  for (size_t i = 0; i < schema().examples.size(); ++i) {
    const ExampleGraph example = make_example(schema(), i);
    const Cost cost = cost_of(*example.node);
    EXPECT_TRUE(std::isfinite(cost.flops) && cost.flops >= 0) << example.label;
    EXPECT_GE(cost.bytes, 0) << example.label;
  }
}

SymbolicShape with_symbol(const SymbolicShape& shape, int64_t extent) {
  SymbolicShape result = shape;
  for (Dimension& dimension : result) {
    if (dimension == Dimension(extent)) dimension = Dimension::symbol("n");
  }
  return result;
}

// The example with the symbol n for every extent that has the given size; null where the operator needs
// numbers.
std::unique_ptr<Graph> symbolic_example(const ExampleGraph& example, int64_t extent) {
  auto graph = std::make_unique<Graph>(example.graph->name());
  std::vector<Value*> inputs;
  for (const Value* input : example.inputs) {
    inputs.push_back(graph->add_input(InputRole::input, input->name(),
                                      {input->data_type(), with_symbol(input->shape(), extent)}));
  }
  Attributes attributes = example.node->attributes();
  for (const auto& [name, attribute] : example.node->attributes().entries()) {
    if (attribute.kind() != AttributeKind::shape) continue;
    attributes.set(name, with_symbol(example.node->attributes().shape(name), extent));
  }
  try {
    const Node* node = graph->add_node(example.node->operator_name(), inputs, attributes);
    for (const auto& output : node->outputs()) graph->add_output(output->name(), output.get());
  } catch (const Error&) {
    return nullptr;
  }
  return graph;
}

TEST_P(OperatorTest, SymbolicShapesSpecializeToTheSame) {
  for (size_t i = 0; i < schema().examples.size(); ++i) {
    const ExampleGraph example = make_example(schema(), i);
    SCOPED_TRACE(example.label);
    std::set<int64_t> extents;
    for (const Tensor& tensor : example.tensors) extents.insert(tensor.shape().begin(), tensor.shape().end());
    extents.erase(0);
    extents.erase(1);  // would not broadcast any more
    for (const int64_t extent : extents) {
      const auto symbolic = symbolic_example(example, extent);
      if (schema().operator_class == OperatorClass::elementwise) {
        ASSERT_NE(symbolic, nullptr) << "elementwise operators take any symbol; extent " << extent;
      }
      if (symbolic == nullptr) continue;
      const auto special = specialize(*symbolic, {{"n", extent}});
      verify(*special);
      for (size_t output = 0; output < special->outputs().size(); ++output) {
        EXPECT_EQ(special->outputs()[output].value->type(), example.node->output(output)->type());
      }
    }
  }
}

// A number in the place of an input that has the result's shape.
TEST_P(OperatorTest, BroadcastsExactlyWhereItSaysSo) {
  if (schema().operator_class != OperatorClass::elementwise || schema().inputs.size() < 2) return;
  const ExampleGraph example = make_example(schema(), 0);
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    if (example.inputs[i]->shape() != example.node->output()->shape()) continue;
    std::vector<TensorType> types;
    for (const Value* input : example.inputs) types.push_back(input->type());
    types[i].shape = {};
    Attributes attributes = example.node->attributes();
    bool taken = false;
    try {
      const TensorType result =
          infer_outputs(schema(), "y", {example.node->places(), types, {}}, attributes).at(0);
      taken = result == example.node->output()->type();
    } catch (const Error&) {
      taken = false;
    }
    EXPECT_EQ(taken, schema().broadcasts) << "input " << i;
  }
}

// What is made in place has the place of its operand; what adds nothing up takes booleans, and nothing else
// does.
TEST_P(OperatorTest, CollectivesAreWhatTheirTraitsSay) {
  const Traits& traits = schema().traits;
  if (schema().operator_class != OperatorClass::communication) {
    EXPECT_FALSE(traits.in_place || traits.moves_only);
    return;
  }
  Graph graph("three_ranks");
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {3, 2}});
  const Node* node = graph.add_node(schema().name, {x}, {{"ranks", 3}}, "y");
  EXPECT_TRUE(!traits.in_place || node->output()->type() == x->type());
  EXPECT_EQ(traits.moves_only, schema().inputs.front().types.contains(DataType::boolean));
}

}  // namespace
}  // namespace tessera::testing
