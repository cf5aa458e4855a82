#include "ops/contraction/attention_shapes.h"

namespace tessera::ops {
namespace {

OperatorExample example_dropout_attention_gradient(const Shape& q, int64_t keys, int64_t value_width,
                                                   bool causal, double rate, const Shape& bias = {}) {
  const Shape y{q[0], q[1], q[2], value_width};
  OperatorExample result{.inputs = {{y},
                                    {q},
                                    {{q[0], q[1], keys, q[3]}},
                                    {{q[0], q[1], keys, value_width}},
                                    {y},
                                    {{q[0], q[1], q[2]}, 1, 3},
                                    {{2}, 0, 1000, DataType::int64}},
                         .attributes = {{"scale", 0.4}, {"causal", causal}, {"rate", rate}, {"stream", 2}}};
  if (!bias.empty()) result.inputs.push_back({bias});
  return result;
}

const OperatorRegistration kRegistration({
    .name = "dropout_attention_gradient",
    .documentation =
        "The gradients of dropout_attention to q, k and v, from that of y and from both of its "
        "results; the weights are recomputed from log_sum, and what was dropped from the counter.",
    .operator_class = OperatorClass::contraction,
    .traits = {.random = true},
    .inputs = attention_gradient_operands(
        {dropout_counter(), {.name = "bias", .optional = true}, attention_key_lengths()}),
    .attributes = dropout_attention_attributes(),
    .outputs = {"q_gradient", "k_gradient", "v_gradient"},
    .infer = infer_attention_gradient,
    .flops = flops_of_attention_gradient,
    .reference = reference_attention_gradient,
    .examples = {example_dropout_attention_gradient({2, 3, 5, 4}, 7, 6, false, 0.5),
                 example_dropout_attention_gradient({1, 2, 6, 5}, 6, 3, true, 0.1),
                 example_dropout_attention_gradient({2, 2, 3, 7}, 5, 1, true, 0.3, {1, 2, 3, 5}),
                 with_key_lengths(
                     example_dropout_attention_gradient({3, 2, 4, 5}, 8, 3, false, 0.2, {1, 2, 4, 8}), 3, 8),
                 with_key_heads(example_dropout_attention_gradient({2, 6, 5, 4}, 7, 3, true, 0.3), 2, 2)},
});

}  // namespace
}  // namespace tessera::ops
