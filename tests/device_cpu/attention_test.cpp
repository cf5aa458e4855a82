#include <algorithm>
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

// Alone, beside a causal mask, and beside a bias; each length a head's own.
TEST(Attention, OfLengthsOfKeys) {
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16, DataType::fp64}) {
    for (const bool causal : {false, true}) {
      for (const bool has_bias : {false, true}) {
        Graph graph;
        const auto input = [&](const char* name, DataType of, const Shape& shape) {
          return graph.add_input(InputRole::input, name, {of, to_symbolic(shape)});
        };
        Value* q = input("q", type, {3, 2, 9, 5});
        Value* k = input("k", type, {3, 2, 7, 5});
        Value* v = input("v", type, {3, 2, 7, 4});
        Value* dy = input("dy", type, {3, 2, 9, 4});
        ops::AttentionOptions options{.causal = causal,
                                      .bias = has_bias ? input("bias", type, {1, 2, 9, 7}) : nullptr,
                                      .key_lengths = input("lengths", DataType::int32, {3})};
        const ops::Attention forward = ops::attention(q, k, v, options);
        const Node& gradient =
            *ops::attention_gradient(dy, q, k, v, forward.y, forward.log_sum, options).q->producer();
        std::vector<Tensor> tensors = random_inputs(*forward.y->producer(), -1, 1);
        tensors.back() = Tensor::from<int32_t>({3}, {7, 1, 4});
        const Problem problem{.terms = 9, .magnitude = 2};
        const Tolerance of_rows = tolerance_for(OperatorClass::contraction, type, problem);
        const Tolerance of_sums =
            tolerance_for(OperatorClass::contraction, forward.log_sum->data_type(), problem);
        expect_every_kernel(*forward.y->producer(), tensors, {of_rows, of_sums},
                            std::vector<bool>(tensors.size(), false));
        std::vector<const Tensor*> pointers;
        for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
        const std::vector<Tensor> made = run_reference(*forward.y->producer(), pointers);
        std::vector<Tensor> of_gradient = random_inputs(gradient, -1, 1);
        std::copy(tensors.begin(), tensors.begin() + 3, of_gradient.begin() + 1);
        std::copy(made.begin(), made.end(), of_gradient.begin() + 4);
        std::copy(tensors.begin() + 3, tensors.end(), of_gradient.begin() + 6);
        expect_every_kernel(gradient, of_gradient, {of_rows, of_rows, of_rows},
                            std::vector<bool>(of_gradient.size(), false));
      }
    }
  }
}

// Of keys that several heads of queries share, whose gradients are sums over these.
TEST(Attention, OfSharedKeys) {
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16, DataType::fp64}) {
    for (const int64_t key_heads : {1, 3}) {
      for (const bool causal : {false, true}) {
        Graph graph;
        const auto input = [&](const char* name, const Shape& shape) {
          return graph.add_input(InputRole::input, name, {type, to_symbolic(shape)});
        };
        Value* q = input("q", {2, 6, 9, 5});
        Value* k = input("k", {2, key_heads, 11, 5});
        Value* v = input("v", {2, key_heads, 11, 4});
        Value* dy = input("dy", {2, 6, 9, 4});
        const ops::AttentionOptions options{.causal = causal, .bias = input("bias", {1, 6, 9, 11})};
        const ops::Attention forward = ops::attention(q, k, v, options);
        const Node& gradient =
            *ops::attention_gradient(dy, q, k, v, forward.y, forward.log_sum, options).q->producer();
        const std::vector<Tensor> tensors = random_inputs(*forward.y->producer(), -1, 1);
        const Problem problem{.terms = 9 * 6 / key_heads, .magnitude = 2};
        const Tolerance of_rows = tolerance_for(OperatorClass::contraction, type, problem);
        const Tolerance of_sums =
            tolerance_for(OperatorClass::contraction, forward.log_sum->data_type(), problem);
        expect_every_kernel(*forward.y->producer(), tensors, {of_rows, of_sums},
                            std::vector<bool>(tensors.size(), false));
        std::vector<const Tensor*> pointers;
        for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
        const std::vector<Tensor> made = run_reference(*forward.y->producer(), pointers);
        const std::vector<Tensor> of_gradient{random_tensor(type, {2, 6, 9, 4}, -1, 1, 71),
                                              tensors[0],
                                              tensors[1],
                                              tensors[2],
                                              made[0],
                                              made[1],
                                              tensors[3]};
        expect_every_kernel(gradient, of_gradient, {of_rows, of_rows, of_rows},
                            std::vector<bool>(of_gradient.size(), false));
      }
    }
  }
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
