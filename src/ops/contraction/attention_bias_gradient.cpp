#include "tessera/ops/attention_weights.h"

#include "ops/contraction/attention_shapes.h"
#include "ops/normalization/normalization.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer(const InferenceCall& call) {
  const AttentionInputs inputs = attention_gradient_inputs(call);
  call.require(inputs.bias != nullptr, "there is no bias to have a gradient");
  return {*inputs.bias};
}

std::vector<Value*> decompose(const Node& node, std::span<Value* const> inputs) {
  const std::vector<Value*> operands(inputs.begin(), inputs.end());
  const AttentionRun run{.q = operands[1],
                         .k = operands[2],
                         .v = operands[3],
                         .y = operands[4],
                         .log_sum = operands[5],
                         .options = attention_options(node, operands, 6),
                         .dropout = {}};
  return {written_bias_gradient(run, operands[0], nullptr)};
}

double flops(const Node& node) {
  const Shape q = node.input(1)->type().static_shape();
  const Shape v = node.input(3)->type().static_shape();
  return attention_flops(node, 1, 2, static_cast<double>(q[3] + v[3]));
}

OperatorExample example(const Shape& q, int64_t keys, int64_t value_width, bool causal, const Shape& bias) {
  const Shape y{q[0], q[1], q[2], value_width};
  return {.inputs = {{y},
                     {q},
                     {{q[0], q[1], keys, q[3]}},
                     {{q[0], q[1], keys, value_width}},
                     {y},
                     {{q[0], q[1], q[2]}, 1, 3},
                     {bias}},
          .attributes = {{"scale", 0.4}, {"causal", causal}}};
}

const OperatorRegistration kRegistration({
    .name = "attention_bias_gradient",
    .documentation = "The gradient of attention to its bias, from that of y and from both of its results: "
                     "exp(scores - log_sum) (output_gradient v^T - the sum of output_gradient y along each "
                     "row), summed over the axes along which the bias was broadcast; 0 where key_lengths "
                     "hide a key.",
    .operator_class = OperatorClass::contraction,
    .inputs = attention_gradient_operands({{.name = "bias"}, attention_key_lengths()}),
    .attributes = attention_attributes(),
    .outputs = {"bias_gradient"},
    .infer = infer,
    .flops = flops,
    .examples = {example({2, 3, 5, 4}, 7, 6, false, {2, 3, 5, 7}),
                 example({1, 2, 6, 5}, 6, 3, true, {1, 1, 6, 6}),
                 example({2, 2, 3, 7}, 5, 1, true, {1, 2, 3, 5}),
                 example({2, 1, 2, 4}, 33, 5, false, {2, 1, 2, 33}),
                 with_key_lengths(example({3, 2, 4, 5}, 6, 3, false, {1, 2, 4, 6}), 3, 6),
                 with_key_heads(example({2, 6, 5, 4}, 7, 3, false, {1, 6, 5, 7}), 2, 2)},
    .decompose = decompose,
});

}  // namespace

Value* as_column(Value* rows) {
  SymbolicShape shape = rows->shape();
  shape.emplace_back(1);
  return reshape(rows, std::move(shape));
}

Value* attention_bias_gradient(Value* output_gradient, const AttentionRun& run) {
  const AttentionOptions& options = run.options;
  return apply("attention_bias_gradient",
               {output_gradient, run.q, run.k, run.v, run.y, run.log_sum, options.bias, options.key_lengths},
               {{"scale", *options.scale}, {"causal", options.causal}})
      ->output();
}

// Here alone the weights are written to memory.
Value* written_bias_gradient(const AttentionRun& run, Value* output_gradient, Value* log_sum_gradient) {
  const DataType type = run.log_sum->data_type();
  Value* weights = attention_weights(attention_products(run.q, run.k), run.log_sum, run.options);
  Value* score_gradient = nullptr;
  if (output_gradient != nullptr) {
    Value* dy = cast(output_gradient, type);
    Value* mean = reduce_sum(multiply(dy, cast(run.y, type)), {.axes = {3}, .keep_dimensions = true});
    score_gradient = subtract(attention_dropped(attention_products(dy, run.v), run.dropout), mean);
  }
  if (log_sum_gradient != nullptr) score_gradient = sum_of(score_gradient, as_column(log_sum_gradient));
  Value* bias = run.options.bias;
  return cast(reduce_to_shape(multiply(weights, score_gradient), bias->shape()), bias->data_type());
}

}  // namespace tessera::ops
