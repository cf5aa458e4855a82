// Heads of keys and values that several heads of queries share, beside the same heads repeated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/ops/dropout_attention.h"
#include "tessera/passes/differentiate.h"

#include "support/compare.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

constexpr int64_t kTexts = 2, kQueryHeads = 6, kQueryRows = 4, kKeyRows = 5;

// As transformers' repeat_kv.
Value* repeated(Value* x, int64_t times) {
  const SymbolicShape& s = x->shape();
  Value* several =
      ops::broadcast_to(ops::reshape(x, {s[0], s[1], 1, s[2], s[3]}), {s[0], s[1], times, s[2], s[3]});
  return ops::reshape(several, {s[0], s[1] * Dimension(times), s[2], s[3]});
}

struct Form {
  bool causal = false;
  bool bias = false;
  double dropout = 0;
};

// y, log_sum and the gradients of q, k, v and of the bias, where there is one, of a loss that reads both
// results.
std::vector<Tensor> grouped_results(const Form& form, int64_t key_heads, bool repeats) {
  Graph graph;
  std::vector<Tensor> inputs;
  const auto input = [&](const Shape& shape) {
    inputs.push_back(random_tensor(DataType::fp64, shape, -1, 1, 5 + inputs.size()));
    return graph.add_input(InputRole::input, "x" + std::to_string(inputs.size()),
                           {DataType::fp64, to_symbolic(shape)});
  };
  std::vector<Value*> operands{input({kTexts, kQueryHeads, kQueryRows, 3}),
                               input({kTexts, key_heads, kKeyRows, 3}),
                               input({kTexts, key_heads, kKeyRows, 2})};
  ops::AttentionOptions options{.causal = form.causal};
  if (form.bias) operands.push_back(options.bias = input({1, kQueryHeads, kQueryRows, kKeyRows}));
  const int64_t times = repeats ? kQueryHeads / key_heads : 1;
  const ops::AttentionDropout drops{
      .rate = form.dropout, .counter = ops::constant(graph, Tensor::from<int64_t>({2}, {7, 3})), .stream = 1};
  const ops::Attention attention = ops::dropout_attention(operands[0], repeated(operands[1], times),
                                                          repeated(operands[2], times), drops, options);
  const auto weighted = [&](Value* result) {
    return ops::reduce_sum(ops::multiply(result, input(result->type().static_shape())), {});
  };
  Value* loss = ops::add(weighted(attention.y), weighted(attention.log_sum));
  std::vector<Value*> results = differentiate(graph, loss, operands);
  results.insert(results.begin(), {attention.y, attention.log_sum});
  for (Value* result : results) graph.add_output("r" + std::to_string(graph.outputs().size()), result);
  return run_reference(graph, inputs).outputs;
}

TEST(GroupedHeads, AreTheSameHeadsRepeated) {
  for (const int64_t key_heads : {1, 2, 3}) {
    for (const Form& form : {Form{}, Form{.causal = true}, Form{.bias = true},
                             Form{.causal = true, .bias = true, .dropout = 0.3}}) {
      const std::vector<Tensor> shared = grouped_results(form, key_heads, false);
      const std::vector<Tensor> repeats = grouped_results(form, key_heads, true);
      ASSERT_EQ(shared.size(), form.bias ? 6U : 5U);
      for (size_t i = 0; i < shared.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} heads of keys, causal {}, bias {}, dropout {}, result {}", key_heads,
                                 form.causal, form.bias, form.dropout, i));
        expect_close(shared[i], repeats[i], {.absolute = 1e-13, .relative = 1e-13});
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing
