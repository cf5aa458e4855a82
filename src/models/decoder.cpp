#include "tessera/models/decoder.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

#include "models/decoder_forms.h"

namespace tessera::models {
namespace {

void check(const DecoderConfig& config) {
  const bool divides_width = config.heads > 0 && config.width % config.heads == 0;
  require(divides_width || (config.heads > 0 && config.head_width > 0), ErrorCode::invalid_argument,
          "a width of {} has no {} heads", config.width, config.heads);
  require(config.key_heads >= 0 && (config.key_heads == 0 || config.heads % config.key_heads == 0),
          ErrorCode::invalid_argument, "{} heads have no {} heads of keys", config.heads, config.key_heads);
}

std::string scope_of(const DecoderConfig& config) {
  return config.form == DecoderForm::gpt2 ? "transformer" : "model";
}

std::string table_of(const DecoderConfig& config) {
  if (!config.tied) return "lm_head.weight";
  return config.form == DecoderForm::gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight";
}

Value* places_of(nn::Context& context, const DecoderConfig& config, const Dimension& tokens,
                 const nn::AttentionCache* cache) {
  if (cache == nullptr) {
    require(!tokens.is_static() || tokens.value() <= config.positions, ErrorCode::invalid_argument,
            "rows of {} tokens, the network has {} positions", tokens.to_string(), config.positions);
    return ops::iota(context.graph(), {tokens}, 0, DataType::int32);
  }
  require(cache->capacity() <= config.positions, ErrorCode::invalid_argument,
          "room for {} tokens, the network has {} positions", cache->capacity(), config.positions);
  // Those that fill up stand somewhere.
  return ops::maximum(cache->places(), ops::constant_like(cache->places(), 0));
}

}  // namespace

Value* DecoderPass::attend(nn::Context& context, Value* q, Value* k, Value* v) const {
  return cache == nullptr ? nn::causal_attention(q, k, v) : cache->attend(context, q, k, v);
}

double outward_deviation(const DecoderConfig& config) {
  return config.deviation / std::sqrt(2.0 * static_cast<double>(config.layers));
}

Value* decoder(nn::Context& context, const DecoderConfig& config, Value* tokens,
               const nn::AttentionCache* cache) {
  check(config);
  const DecoderPass pass{cache, places_of(context, config, tokens->shape()[1], cache)};
  const auto scope = context.scope(scope_of(config));
  return config.form == DecoderForm::gpt2 ? gpt2_decoder(context, config, tokens, pass)
                                          : llama_decoder(context, config, tokens, pass);
}

Value* decoder_logits(nn::Context& context, const DecoderConfig& config, Value* decoded) {
  Value* words =
      context.parameter(table_of(config), {config.vocabulary, config.width}, nn::normal(config.deviation));
  return ops::matmul(decoded, words, {.transpose_b = true});
}

std::vector<nn::Variable> decoder_variables(const DecoderConfig& config) {
  Graph graph("decoder");
  nn::Context context(graph, nn::Mode::inference);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {1, 1}});
  decoder_logits(context, config, decoder(context, config, tokens));
  return context.variables();
}

}  // namespace tessera::models
