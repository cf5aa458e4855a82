#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/nn/attention_parts.h"
#include "tessera/nn/layers.h"
#include "tessera/nn/unpadding.h"

#include "nn/hidden_scores.h"

namespace tessera::nn {
namespace {

// Small enough that its exponential is 0 beside that of any score, and within fp16.
constexpr double kHidden = -30000;

// The weights, or the biases, of linear layers of that width, one below the other.
Value* joined_weights(Context& context, const std::string& name, const std::vector<std::string>& parts,
                      int64_t width, const Initializer& weight) {
  std::vector<Value*> weights;
  for (const std::string& part : parts)
    weights.push_back(context.parameter(fmt::format("{}.{}.weight", name, part), {width, width}, weight));
  return parts.size() == 1 ? weights.front() : ops::concat(weights, 0);
}

Value* joined_biases(Context& context, const std::string& name, const std::vector<std::string>& parts,
                     int64_t width) {
  std::vector<Value*> biases;
  for (const std::string& part : parts)
    biases.push_back(context.parameter(fmt::format("{}.{}.bias", name, part), {width}, zeros(), false));
  return parts.size() == 1 ? biases.front() : ops::concat(biases, 0);
}

// Queries, keys and values, whose variables stand one below the other in files, as torch's.
Value* stacked_product(Context& context, const std::string& name, Value* x, const Initializer& weight,
                       bool bias) {
  const int64_t width = x->shape().back().value();
  Value* projected = ops::matmul(x, context.parameter(name + ".in_proj_weight", {3 * width, width}, weight),
                                 {.transpose_b = true});
  if (bias)
    projected = ops::add(projected, context.parameter(name + ".in_proj_bias", {3 * width}, zeros(), false));
  return projected;
}

// [..., parts * width].
Value* joined_product(Context& context, const std::string& name, Value* x,
                      const std::vector<std::string>& parts, const Initializer& weight, bool bias) {
  const int64_t width = x->shape().back().value();
  Value* projected =
      ops::matmul(x, joined_weights(context, name, parts, width, weight), {.transpose_b = true});
  if (bias) projected = ops::add(projected, joined_biases(context, name, parts, width));
  return projected;
}

}  // namespace

std::vector<Value*> projected_heads(Context& context, const std::string& name, Value* x, int64_t heads,
                                    const std::vector<std::string>& parts, const Initializer& weight,
                                    bool bias) {
  return split_heads(joined_product(context, name, x, parts, weight, bias), std::ssize(parts), heads);
}

ops::Expression self_attention(Context& context, const std::string& name, Value* x, int64_t heads,
                               const SelfAttentionOptions& options) {
  const int64_t width = x->shape().back().value();
  require(x->type().rank() == 3 && width % heads == 0, ErrorCode::invalid_argument,
          "layer '{}' takes [N, tokens, width] of {} heads, not {}", name, heads, to_string(x->type()));
  const Initializer weight = options.weight.value_or(xavier_uniform());
  Value* projected =
      options.names
          ? joined_product(context, name, x, {options.names->query, options.names->key, options.names->value},
                           weight, options.bias)
          : stacked_product(context, name, x, weight, options.bias);
  if (options.list != nullptr) projected = options.list->to_rows(projected);
  const std::vector<Value*> operands = split_heads(projected, 3, heads);
  const ops::AttentionOptions attention{
      .causal = options.causal, .bias = options.scores, .key_lengths = options.key_lengths};
  Value* joined = join_heads(
      dropout_attention(context, operands[0], operands[1], operands[2], options.dropout, attention));
  if (options.list != nullptr) joined = options.list->to_list(joined);
  return linear(
      context, name + "." + (options.names ? options.names->output : "out_proj"), joined, width,
      {.bias = options.bias, .weight = options.weight.value_or(fan_in_uniform()), .bias_start = zeros()});
}

Value* hidden_scores(Value* hides) {
  return ops::multiply(ops::cast(hides, DataType::fp32), kHidden);
}

ops::Expression key_lengths(Value* lengths, const Dimension& tokens) {
  Value* all = ops::count_elements(lengths->graph(), {tokens}, lengths->data_type());
  return ops::minimum(ops::maximum(lengths, ops::constant_like(lengths, 1)), all);
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
