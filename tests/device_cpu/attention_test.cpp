#include <limits>

#include "tessera/ops/functions.h"

#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

// As padded sentences have them.
TEST(CausalAttention, QueriesDoNotSeeWhatIsNotFiniteInKeysAfterThem) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16, DataType::fp64}) {
    Graph graph;
    const TensorType rows{type, {1, 2, 6, 5}};
    Value* q = graph.add_input(InputRole::input, "q", rows);
    Value* k = graph.add_input(InputRole::input, "k", rows);
    Value* v = graph.add_input(InputRole::input, "v", rows);
    const Node& node = *ops::attention(q, k, v, {.causal = true}).y->producer();
    std::vector<Tensor> inputs = random_inputs(node, -1, 1);
    inputs[1].set(4 * 5 + 2, nan);         // of key 4
    inputs[2].set(3 * 5 + 1, nan);         // of the value of key 3
    inputs[2].set((6 + 5) * 5, infinity);  // of that of key 5 of the second head
    const Problem problem{.terms = 6, .magnitude = 2};
    const Tolerances tolerances{
        tolerance_for(OperatorClass::contraction, type, problem),
        tolerance_for(OperatorClass::contraction, node.output(1)->data_type(), problem)};
    expect_every_kernel(node, inputs, tolerances, {false, false, false});
    std::vector<const Tensor*> pointers;
    for (const Tensor& input : inputs) pointers.push_back(&input);
    const Tensor y = run_reference(node, pointers)[0];
    for (int64_t i = 0; i < 3 * 5; ++i) EXPECT_TRUE(std::isfinite(y.at(i))) << i;
    EXPECT_TRUE(std::isnan(y.at(3 * 5 + 1)));
  }
}

TEST(CausalAttention, GradientsOfKeysDoNotSeeQueriesBeforeThem) {
  Graph graph;
  const TensorType rows{DataType::fp32, {1, 1, 6, 5}};
  std::vector<Value*> inputs;
  for (const char* name : {"q", "k", "v", "dy", "y"})
    inputs.push_back(graph.add_input(InputRole::input, name, rows));
  Value* log_sum = graph.add_input(InputRole::input, "log_sum", {DataType::fp32, {1, 1, 6}});
  const Node& node = *ops::attention_gradient(inputs[3], inputs[0], inputs[1], inputs[2], inputs[4], log_sum,
                                              {.causal = true})
                          .q->producer();
  std::vector<Tensor> tensors = random_inputs(node, -1, 1);
  tensors[1].set(2 * 5, std::numeric_limits<double>::quiet_NaN());  // of query 2
  const Tolerance tolerance =
      tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 60, .magnitude = 8});
  expect_every_kernel(node, tensors, {tolerance, tolerance, tolerance}, std::vector<bool>(6, false));
}

// As in a frozen network in which positions attend to each other.
TEST(Attention, OfKnownOperands) {
  for (const int64_t rows : {1, 2, 3, 5, 17}) {
    for (const int64_t width : {1, 5, 16}) {
      Graph graph;
      const TensorType type{DataType::fp32, {1, 1, rows, width}};
      Value* q = graph.add_input(InputRole::input, "q", type);
      Value* v = graph.add_input(InputRole::input, "v", type);
      Value* bias = graph.add_input(InputRole::input, "bias", {DataType::fp32, {1, 1, rows, rows}});
      const Node& node = *ops::attention(q, q, v, {.bias = bias}).y->producer();
      std::vector<Tensor> inputs = random_inputs(node, -1, 1);
      inputs[1] = inputs[0];
      const Tolerance tolerance =
          tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 64, .magnitude = 2});
      expect_every_kernel(node, inputs, {tolerance, tolerance}, {true, true, true, true});
    }
  }
}

}  // namespace
}  // namespace tessera::testing
