#include "tessera/nn/layers.h"

#include "models/decoder_forms.h"

namespace tessera::models {
namespace {

// A Conv1D of transformers.
Value* dense(nn::Context& context, const std::string& name, Value* x, int64_t outputs, double deviation) {
  return nn::linear(
      context, name, x, outputs,
      {.transposed_in_files = true, .weight = nn::normal(deviation), .bias_start = nn::zeros()});
}

Value* self_attention(nn::Context& context, const DecoderConfig& config, Value* x, const DecoderPass& pass) {
  const auto scope = context.scope("attn");
  Value* joined = dense(context, "c_attn", x, 3 * config.width, config.deviation);
  const std::vector<Value*> parts = nn::split_heads(joined, 3, config.heads);
  Value* attended = nn::join_heads(pass.attend(context, parts[0], parts[1], parts[2]));
  return dense(context, "c_proj", attended, config.width, outward_deviation(config));
}

Value* inner_layers(nn::Context& context, const DecoderConfig& config, Value* x) {
  const auto scope = context.scope("mlp");
  Value* inner = ops::gelu(dense(context, "c_fc", x, config.inner, config.deviation), true);
  return dense(context, "c_proj", inner, config.width, outward_deviation(config));
}

}  // namespace

Value* gpt2_decoder(nn::Context& context, const DecoderConfig& config, Value* tokens,
                    const DecoderPass& pass) {
  const nn::EmbeddingOptions table{.weight = nn::normal(config.deviation)};
  ops::Expression x = nn::embedding(context, "wte", tokens, config.vocabulary, config.width, table);
  Value* positions = nn::embedding(context, "wpe", pass.places, config.positions, config.width, table);
  x = nn::dropout(context, x + positions, config.dropout);
  const auto added = [&](Value* part) { return nn::dropout(context, part, config.dropout); };
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto scope = context.scope("h." + std::to_string(layer));
    Value* attended =
        self_attention(context, config, nn::layer_norm(context, "ln_1", x, config.epsilon), pass);
    x = x + added(attended);
    x = x + added(inner_layers(context, config, nn::layer_norm(context, "ln_2", x, config.epsilon)));
  }
  return nn::layer_norm(context, "ln_f", x, config.epsilon);
}

}  // namespace tessera::models
