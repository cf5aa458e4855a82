#include "tessera/ops/dropout_attention.h"

#include <cmath>

#include "ops/contraction/attention_shapes.h"

namespace tessera::ops {
namespace {

// The operands q, ... before counter, bias and lengths of keys.
Node* apply_with_dropout(const std::string& name, std::vector<Value*> operands, Value* q,
                         const AttentionDropout& dropout, const AttentionOptions& options) {
  for (Value* operand : {dropout.counter, options.bias, options.key_lengths}) operands.push_back(operand);
  const double usual = 1 / std::sqrt(static_cast<double>(q->shape().back().value()));
  return apply(name, operands,
               {{"scale", options.scale.value_or(usual)},
                {"causal", options.causal},
                {"rate", dropout.rate},
                {"stream", dropout.stream}});
}

OperatorExample example_dropout_attention(const Shape& q, int64_t keys, int64_t value_width, bool causal,
                                          double rate, int stream, const Shape& bias = {}) {
  OperatorExample result{
      .inputs = {{q, -2, 2},
                 {{q[0], q[1], keys, q[3]}, -2, 2},
                 {{q[0], q[1], keys, value_width}, -2, 2},
                 {{2}, 0, 1000, DataType::int64}},
      .attributes = {{"scale", 0.4}, {"causal", causal}, {"rate", rate}, {"stream", stream}}};
  if (!bias.empty()) result.inputs.push_back({bias, -2, 2});
  return result;
}

const OperatorRegistration kRegistration({
    .name = "dropout_attention",
    .documentation =
        "attention whose weights are dropped: y = dropout(softmax(scale * q k^T + bias)) v, by the numbers "
        "that dropout of the same counter, rate and stream has for the weights [batch, heads, queries, "
        "keys]; they are drawn where they are needed and not kept. log_sum is of what nothing was dropped "
        "of. key_lengths are those of attention.",
    .operator_class = OperatorClass::contraction,
    .traits = {.random = true},
    .inputs = {{.name = "q"},
               {.name = "k"},
               {.name = "v"},
               dropout_counter(),
               {.name = "bias", .optional = true},
               attention_key_lengths()},
    .attributes = dropout_attention_attributes(),
    .outputs = {"y", "log_sum"},
    .infer = infer_attention,
    .gradient = gradient_attention,
    .flops = flops_of_attention,
    .reference = reference_attention,
    .examples = {example_dropout_attention({2, 3, 5, 4}, 7, 6, false, 0.5, 0),
                 example_dropout_attention({1, 2, 6, 5}, 6, 3, true, 0.1, 3),
                 example_dropout_attention({2, 2, 3, 7}, 5, 1, true, 0.3, 1, {1, 2, 3, 5}),
                 example_dropout_attention({2, 1, 2, 4}, 33, 5, false, 0.1, 2, {2, 1, 2, 33}),
                 with_key_lengths(example_dropout_attention({3, 2, 4, 5}, 8, 3, false, 0.2, 4, {1, 2, 4, 8}),
                                  3, 8),
                 with_key_heads(example_dropout_attention({2, 6, 5, 4}, 7, 3, true, 0.3, 2), 1, 2)},
});

}  // namespace

Attention dropout_attention(Value* q, Value* k, Value* v, const AttentionDropout& dropout,
                            const AttentionOptions& options) {
  if (dropout.rate == 0) return attention(q, k, v, options);
  Node* node = apply_with_dropout("dropout_attention", {q, k, v}, q, dropout, options);
  return {node->output(0), node->output(1)};
}

AttentionGradients dropout_attention_gradient(Value* output_gradient, Value* q, Value* k, Value* v, Value* y,
                                              Value* log_sum, const AttentionDropout& dropout,
                                              const AttentionOptions& options) {
  if (dropout.rate == 0) return attention_gradient(output_gradient, q, k, v, y, log_sum, options);
  Node* node = apply_with_dropout("dropout_attention_gradient", {output_gradient, q, k, v, y, log_sum}, q,
                                  dropout, options);
  return {node->output(0), node->output(1), node->output(2)};
}

}  // namespace tessera::ops
