#include "tessera/nn/layers.h"

#include "models/decoder_forms.h"

namespace tessera::models {
namespace {

ops::Expression dense(nn::Context& context, const std::string& name, Value* x, int64_t outputs,
                      double deviation, bool bias) {
  return nn::linear(context, name, x, outputs,
                    {.bias = bias, .weight = nn::normal(deviation), .bias_start = nn::zeros()});
}

int64_t head_width(const DecoderConfig& config) {
  return config.head_width > 0 ? config.head_width : config.width / config.heads;
}

Value* self_attention(nn::Context& context, const DecoderConfig& config, Value* x, const DecoderPass& pass,
                      const nn::RotaryAngles& angles) {
  const auto scope = context.scope("self_attn");
  const int64_t key_heads = config.key_heads > 0 ? config.key_heads : config.heads;
  const auto heads_of = [&](const std::string& name, int64_t heads) {
    const int64_t width = head_width(config);
    Value* y = dense(context, name, x, heads * width, config.deviation, config.attention_bias);
    return ops::reshape(y, {y->shape()[0], y->shape()[1], heads, width});
  };
  // Heads are rotated where the product left them, and only then moved: attention reads them from there.
  const auto moved = [](Value* heads) { return ops::transpose(heads, {0, 2, 1, 3}); };
  Value* q = moved(nn::rotate(heads_of("q_proj", config.heads), angles));
  Value* k = moved(nn::rotate(heads_of("k_proj", key_heads), angles));
  Value* v = moved(heads_of("v_proj", key_heads));
  Value* attended = nn::join_heads(pass.attend(context, q, k, v));
  return dense(context, "o_proj", attended, config.width, outward_deviation(config), config.attention_bias);
}

// SwiGLU (Shazeer 2020, arXiv:2002.05202).
Value* inner_layers(nn::Context& context, const DecoderConfig& config, Value* x) {
  const auto scope = context.scope("mlp");
  const bool bias = config.inner_bias;
  Value* gate = ops::silu(dense(context, "gate_proj", x, config.inner, config.deviation, bias));
  Value* inner = gate * dense(context, "up_proj", x, config.inner, config.deviation, bias);
  return dense(context, "down_proj", inner, config.width, outward_deviation(config), bias);
}

}  // namespace

Value* llama_decoder(nn::Context& context, const DecoderConfig& config, Value* tokens,
                     const DecoderPass& pass) {
  const nn::RotaryAngles angles =
      nn::rotary_angles(pass.places, head_width(config), config.rotary_base, config.rotary_scaling);
  ops::Expression x = nn::embedding(context, "embed_tokens", tokens, config.vocabulary, config.width,
                                    {.weight = nn::normal(config.deviation)});
  const auto added = [&](Value* part) { return nn::dropout(context, part, config.dropout); };
  const auto norm = [&](const std::string& name) { return nn::rms_norm(context, name, x, config.epsilon); };
  x = added(x);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto scope = context.scope("layers." + std::to_string(layer));
    x = x + added(self_attention(context, config, norm("input_layernorm"), pass, angles));
    x = x + added(inner_layers(context, config, norm("post_attention_layernorm")));
  }
  return norm("norm");
}

}  // namespace tessera::models
