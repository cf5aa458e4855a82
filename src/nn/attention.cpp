#include "tessera/base/error.h"
#include "tessera/nn/attention_parts.h"
#include "tessera/nn/layers.h"

#include "nn/hidden_scores.h"

namespace tessera::nn {
namespace {

// Small enough that its exponential is 0 beside that of any score, and within fp16.
constexpr double kHidden = -30000;

// The weight, or with `biases` the bias, of queries, keys and values, one below the other.
Value* joined_variables(Context& context, const std::string& name, int64_t width,
                        const SelfAttentionOptions& options, bool biases) {
  const auto make = [&](const std::string& variable, int64_t rows) {
    if (biases) return context.parameter(name + variable, {rows}, zeros(), false);
    return context.parameter(name + variable, {rows, width}, options.weight.value_or(xavier_uniform()));
  };
  if (!options.names) return make(biases ? ".in_proj_bias" : ".in_proj_weight", 3 * width);
  std::vector<Value*> parts;
  for (const std::string& part : {options.names->query, options.names->key, options.names->value})
    parts.push_back(make("." + part + (biases ? ".bias" : ".weight"), width));
  return ops::concat(parts, 0);
}

}  // namespace

ops::Expression self_attention(Context& context, const std::string& name, Value* x, int64_t heads,
                               const SelfAttentionOptions& options) {
  const int64_t width = x->shape().back().value();
  require(x->type().rank() == 3 && width % heads == 0, ErrorCode::invalid_argument,
          "layer '{}' takes [N, tokens, width] of {} heads, not {}", name, heads, to_string(x->type()));
  Value* projected =
      ops::matmul(x, joined_variables(context, name, width, options, false), {.transpose_b = true});
  if (options.bias) projected = ops::add(projected, joined_variables(context, name, width, options, true));
  // Each token's row holds q, k and v of all heads.
  const std::vector<Value*> operands = split_heads(projected, 3, heads);
  const ops::AttentionOptions attention{.causal = options.causal, .bias = options.scores};
  Value* joined = join_heads(ops::attention(operands[0], operands[1], operands[2], attention).y);
  return linear(
      context, name + "." + (options.names ? options.names->output : "out_proj"), joined, width,
      {.bias = options.bias, .weight = options.weight.value_or(fan_in_uniform()), .bias_start = zeros()});
}

Value* hidden_scores(Value* hides) {
  return ops::multiply(ops::cast(hides, DataType::fp32), kHidden);
}

ops::Expression hidden_keys(Value* shown) {
  const SymbolicShape& shape = shown->shape();
  Value* scores = hidden_scores(ops::equal(shown, ops::constant_like(shown, 0)));
  return ops::broadcast_to(ops::reshape(scores, {shape[0], 1, 1, shape[1]}),
                           {shape[0], 1, shape[1], shape[1]});
}

ops::Expression hidden_texts(Value* texts) {
  const SymbolicShape& shape = texts->shape();
  return hidden_scores(ops::not_equal(ops::reshape(texts, {shape[0], 1, shape[1], 1}),
                                      ops::reshape(texts, {shape[0], 1, 1, shape[1]})));
}

ops::Expression within_lengths(Value* lengths, const Dimension& tokens) {
  const Dimension& rows = lengths->shape()[0];
  Value* places = ops::iota(lengths->graph(), {1, tokens}, 1, lengths->data_type());
  return ops::cast(ops::less(places, ops::reshape(lengths, {rows, 1})), DataType::int32);
}

}  // namespace tessera::nn
