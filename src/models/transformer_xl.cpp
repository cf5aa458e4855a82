#include "tessera/models/transformer_xl.h"

#include <cmath>
#include <string>

#include "tessera/base/error.h"
#include "tessera/nn/attention_parts.h"
#include "tessera/nn/layers.h"
#include "tessera/nn/relative_attention.h"

namespace tessera::models {
namespace {

// One set of tables for both ends of the network.
nn::AdaptiveTables tables_of(nn::Context& context, const TransformerXlConfig& config) {
  return {context, "word_emb", config.vocabulary, config.width, config.deviation};
}

// What all layers read beside the tokens.
struct Pass {
  const nn::SegmentMemory* memory;
  Value* positions;     // [keys, width]
  Value* hidden;        // added to scores
  Value* content_bias;  // [heads, width of a head], as the next
  Value* position_bias;
};

// [keys, width] -> [heads, keys, width of a head].
Value* positions_by_head(Value* positions, int64_t heads) {
  const SymbolicShape& s = positions->shape();
  return ops::transpose(ops::reshape(positions, {s[0], heads, s[1].value() / heads}), {1, 0, 2});
}

Value* attended(nn::Context& context, const TransformerXlConfig& config, Value* x, const Pass& pass) {
  const auto scope = context.scope("dec_attn");
  const nn::LinearOptions plain{.bias = false, .weight = nn::normal(config.deviation)};
  Value* keys = pass.memory == nullptr ? x : pass.memory->extend(context, x);
  Value* weight = context.parameter("qkv_net.weight", {3 * config.width, config.width}, plain.weight);
  const std::vector<Value*> weights = ops::split(weight, {config.width, 2 * config.width}, 0);
  Value* queries = ops::matmul(x, weights[0], {.transpose_b = true});
  const std::vector<Value*> both =
      nn::split_heads(ops::matmul(keys, weights[1], {.transpose_b = true}), 2, config.heads);
  Value* positions = nn::linear(context, "r_net", pass.positions, config.width, plain);
  Value* y = nn::relative_attention({.q = nn::split_heads(queries, 1, config.heads).front(),
                                     .k = both[0],
                                     .v = both[1],
                                     .positions = positions_by_head(positions, config.heads),
                                     .content_bias = pass.content_bias,
                                     .position_bias = pass.position_bias,
                                     .hidden = pass.hidden});
  Value* joined = nn::linear(context, "o_net", nn::join_heads(y), config.width, plain);
  return nn::layer_norm(context, "layer_norm", x + nn::dropout(context, joined, config.dropout),
                        config.epsilon);
}

Value* transformed(nn::Context& context, const TransformerXlConfig& config, Value* x) {
  const auto scope = context.scope("pos_ff");
  const auto dense = [&](const char* name, Value* given, int64_t outputs) {
    return nn::linear(context, name, given, outputs,
                      {.weight = nn::normal(config.deviation), .bias_start = nn::zeros()});
  };
  Value* inner = nn::dropout(context, ops::relu(dense("CoreNet.0", x, config.inner)), config.dropout);
  Value* added = nn::dropout(context, dense("CoreNet.3", inner, config.width), config.dropout);
  return nn::layer_norm(context, "layer_norm", ops::add(x, added), config.epsilon);
}

}  // namespace

TransformerXlConfig transformer_xl_base() {
  return {.vocabulary = {.tokens = 267735, .cutoffs = {20000, 40000, 200000}, .narrowing = 1},
          .width = 410,
          .layers = 16,
          .heads = 10,
          .inner = 2100};
}

Value* transformer_xl(nn::Context& context, const TransformerXlConfig& config, Value* tokens,
                      const nn::SegmentMemory* memory) {
  require(config.heads > 0 && config.width % config.heads == 0, ErrorCode::invalid_argument,
          "a width of {} has no {} heads", config.width, config.heads);
  Graph& graph = context.graph();
  const int64_t length = tokens->shape()[1].value();
  const int64_t keys = length + (memory == nullptr ? 0 : memory->length());
  const Shape of_biases{config.heads, config.width / config.heads};
  const auto bias = [&](const char* name) {
    return context.parameter(name, of_biases, nn::normal(config.deviation), false);
  };
  const Pass pass{.memory = memory,
                  .positions = nn::relative_positions(graph, keys, config.width, config.farthest),
                  .hidden = memory == nullptr ? nn::hidden_after(graph, length) : memory->hidden(),
                  .content_bias = bias("r_w_bias"),
                  .position_bias = bias("r_r_bias")};
  const double scale = std::sqrt(static_cast<double>(config.width));
  Value* x = nn::dropout(context, tables_of(context, config).embedded(tokens) * scale, config.dropout);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto scope = context.scope("layers." + std::to_string(layer));
    x = transformed(context, config, attended(context, config, x, pass));
  }
  return nn::dropout(context, x, config.dropout);
}

Value* transformer_xl_losses(nn::Context& context, const TransformerXlConfig& config, Value* decoded,
                             Value* labels, const std::vector<int64_t>& most_labels) {
  const SymbolicShape shape = labels->shape();
  const Dimension places = element_count(shape);
  Value* losses = nn::adaptive_losses(config.vocabulary, tables_of(context, config).weights(context, "crit"),
                                      ops::reshape(decoded, {places, config.width}),
                                      ops::reshape(labels, {places}), most_labels);
  return ops::reshape(losses, shape);
}

Value* transformer_xl_logits(nn::Context& context, const TransformerXlConfig& config, Value* decoded) {
  SymbolicShape shape = decoded->shape();
  shape.back() = config.vocabulary.tokens;
  Value* rows = ops::reshape(decoded, {-1, config.width});
  Value* logits = nn::adaptive_log_probabilities(config.vocabulary,
                                                 tables_of(context, config).weights(context, "crit"), rows);
  return ops::reshape(logits, shape);
}

std::vector<nn::Variable> transformer_xl_variables(const TransformerXlConfig& config) {
  Graph graph("transformer_xl");
  nn::Context context(graph, nn::Mode::inference);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {1, 1}});
  transformer_xl_logits(context, config, transformer_xl(context, config, tokens));
  return context.variables();
}

}  // namespace tessera::models
