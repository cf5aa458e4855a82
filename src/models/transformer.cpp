#include "tessera/models/transformer.h"

#include <cmath>
#include <functional>
#include <string>

#include "tessera/base/error.h"
#include "tessera/nn/attention_parts.h"
#include "tessera/nn/layers.h"

namespace tessera::models {
namespace {

// fairseq counts places from the one after its token for padding, which is the second of a vocabulary.
constexpr int64_t kFirstPlace = 2;

nn::Initializer table_start(const TransformerConfig& config) {
  return nn::normal(std::pow(static_cast<double>(config.width), -0.5));
}

// As of one weight for the three of an attention, which fairseq starts them as.
nn::Initializer projection_start(const TransformerConfig& config) {
  return nn::uniform(std::sqrt(6.0 / (4.0 * static_cast<double>(config.width))));
}

// The table of both sides, which neither builds before the other.
Value* words_of(nn::Context& context, const TransformerConfig& config) {
  return context.parameter("encoder.embed_tokens.weight", {config.vocabulary, config.width},
                           table_start(config));
}

void check(const TransformerConfig& config, const Dimension& tokens) {
  require(config.heads > 0 && config.width % config.heads == 0, ErrorCode::invalid_argument,
          "a width of {} has no {} heads", config.width, config.heads);
  require(!tokens.is_static() || tokens.value() <= config.positions, ErrorCode::invalid_argument,
          "rows of {} tokens, the network has {} positions", tokens.to_string(), config.positions);
}

// places: int32 [tokens].
Value* embedded(nn::Context& context, const TransformerConfig& config, Value* tokens, Value* places) {
  const ops::Expression words = ops::gather(words_of(context, config), tokens);
  Value* from_first = ops::add(places, ops::constant_like(places, static_cast<double>(kFirstPlace)));
  return nn::dropout(context,
                     words * std::sqrt(static_cast<double>(config.width)) +
                         nn::sinusoidal_positions(from_first, config.width),
                     config.dropout);
}

// Of whole rows.
Value* embedded(nn::Context& context, const TransformerConfig& config, Value* tokens) {
  const Dimension& count = tokens->shape()[1];
  check(config, count);
  return embedded(context, config, tokens, ops::iota(context.graph(), {count}, 0, DataType::int32));
}

// A layer's parts, each of which adds to what it was given.
class Layer {
 public:
  Layer(nn::Context& context, const TransformerConfig& config, Value* x)
      : context_(context), config_(config), x_(x) {}

  void add(const std::string& norm, const std::function<Value*(Value* given)>& part) {
    const auto normed = [&](Value* x) { return nn::layer_norm(context_, norm, x, config_.epsilon); };
    Value* given = config_.pre_norm ? static_cast<Value*>(normed(x_)) : x_;
    x_ = x_ + nn::dropout(context_, part(given), config_.dropout);
    if (!config_.pre_norm) x_ = normed(x_);
  }
  Value* end() {
    add("final_layer_norm", [&](Value* given) -> Value* {
      return nn::linear(context_, "fc2", ops::relu(nn::linear(context_, "fc1", given, config_.inner)),
                        config_.width);
    });
    return x_;
  }

 private:
  nn::Context& context_;
  const TransformerConfig& config_;
  Value* x_;
};

std::vector<Value*> heads_of(nn::Context& context, const TransformerConfig& config, const std::string& name,
                             Value* x, const std::vector<std::string>& parts) {
  return nn::projected_heads(context, name, x, config.heads, parts, projection_start(config));
}

Value* joined(nn::Context& context, const TransformerConfig& config, const std::string& name,
              Value* attended) {
  return nn::linear(context, name + ".out_proj", nn::join_heads(attended), config.width,
                    {.weight = nn::xavier_uniform(), .bias_start = nn::zeros()});
}

Value* normed_end(nn::Context& context, const TransformerConfig& config, Value* x) {
  if (!config.pre_norm) return x;
  return nn::layer_norm(context, "layer_norm", x, config.epsilon);
}

const std::vector<std::string> kAllThree{"q_proj", "k_proj", "v_proj"};

// In the scope of a layer of the decoder.
TransformerMemory memory_of(nn::Context& context, const TransformerConfig& config, Value* encoded) {
  const std::vector<Value*> parts = heads_of(context, config, "encoder_attn", encoded, {"k_proj", "v_proj"});
  return {parts[0], parts[1]};
}

// What the decoder's tokens attend to, in the scope of a layer: all [rows, heads, tokens, width].
struct DecoderAttention {
  std::function<Value*(Value* q, Value* k, Value* v)> to_itself;
  std::function<Value*(Value* q, int64_t layer)> to_text;
};

Value* decoder_layers(nn::Context& context, const TransformerConfig& config, Value* x,
                      const DecoderAttention& attention) {
  const auto scope = context.scope("decoder");
  for (int64_t number = 0; number < config.decoder_layers; ++number) {
    const auto inside = context.scope("layers." + std::to_string(number));
    Layer layer(context, config, x);
    layer.add("self_attn_layer_norm", [&](Value* given) {
      const std::vector<Value*> parts = heads_of(context, config, "self_attn", given, kAllThree);
      return joined(context, config, "self_attn", attention.to_itself(parts[0], parts[1], parts[2]));
    });
    layer.add("encoder_attn_layer_norm", [&](Value* given) {
      Value* queries = heads_of(context, config, "encoder_attn", given, {"q_proj"}).front();
      return joined(context, config, "encoder_attn", attention.to_text(queries, number));
    });
    x = layer.end();
  }
  return normed_end(context, config, x);
}

}  // namespace

Value* transformer_encoder(nn::Context& context, const TransformerConfig& config, Value* tokens,
                           Value* lengths) {
  Value* x = embedded(context, config, tokens);
  Value* key_lengths = nn::key_lengths(lengths, tokens->shape()[1]);
  const auto scope = context.scope("encoder");
  for (int64_t number = 0; number < config.encoder_layers; ++number) {
    const auto inside = context.scope("layers." + std::to_string(number));
    Layer layer(context, config, x);
    layer.add("self_attn_layer_norm", [&](Value* given) {
      const std::vector<Value*> parts = heads_of(context, config, "self_attn", given, kAllThree);
      return joined(context, config, "self_attn",
                    nn::dropout_attention(context, parts[0], parts[1], parts[2], config.attention_dropout,
                                          {.key_lengths = key_lengths}));
    });
    x = layer.end();
  }
  return normed_end(context, config, x);
}

Value* transformer_decoder(nn::Context& context, const TransformerConfig& config, Value* tokens,
                           Value* encoded, Value* lengths) {
  Value* key_lengths = nn::key_lengths(lengths, encoded->shape()[1]);
  return decoder_layers(
      context, config, embedded(context, config, tokens),
      {.to_itself = [&](Value* q, Value* k, Value* v) -> Value* {
         return nn::dropout_attention(context, q, k, v, config.attention_dropout, {.causal = true});
       },
       .to_text = [&](Value* q, int64_t /*layer*/) -> Value* {
         const TransformerMemory memory = memory_of(context, config, encoded);
         return nn::dropout_attention(context, q, memory.keys, memory.values, config.attention_dropout,
                                      {.key_lengths = key_lengths});
       }});
}

std::vector<TransformerMemory> transformer_memory(nn::Context& context, const TransformerConfig& config,
                                                  Value* encoded) {
  std::vector<TransformerMemory> all;
  for (int64_t number = 0; number < config.decoder_layers; ++number) {
    const auto scope = context.scope("decoder.layers." + std::to_string(number));
    const TransformerMemory memory = memory_of(context, config, encoded);
    all.push_back({ops::cast(memory.keys, DataType::fp32), ops::cast(memory.values, DataType::fp32)});
  }
  return all;
}

Value* transformer_step(nn::Context& context, const TransformerConfig& config, const TransformerStep& step) {
  const Dimension rows = step.tokens->shape()[0], texts = step.lengths->shape()[0];
  const int64_t beams = rows.value() / texts.value(), head = config.width / config.heads;
  const nn::RowsCache cache(step.place, step.parents, step.capacity);
  Value* key_lengths = nn::key_lengths(step.lengths, step.memory.front().keys->shape()[2]);
  check(config, step.capacity);
  Value* x = embedded(context, config, ops::reshape(step.tokens, {rows, 1}), step.place);
  return decoder_layers(
      context, config, x,
      {.to_itself = [&](Value* q, Value* k, Value* v) -> Value* { return cache.attend(context, q, k, v); },
       // The rows of a text are as many queries to it, so that nothing of it is repeated.
       .to_text = [&](Value* q, int64_t layer) -> Value* {
         const TransformerMemory& memory = step.memory[static_cast<size_t>(layer)];
         Value* by_text = ops::transpose(ops::reshape(q, {texts, beams, config.heads, head}), {0, 2, 1, 3});
         Value* attended =
             ops::attention(by_text, memory.keys, memory.values, {.key_lengths = key_lengths}).y;
         return ops::reshape(ops::transpose(attended, {0, 2, 1, 3}), {rows, config.heads, 1, head});
       }});
}

Value* transformer_logits(nn::Context& context, const TransformerConfig& config, Value* decoded) {
  return ops::matmul(decoded, words_of(context, config), {.transpose_b = true});
}

std::vector<nn::Variable> transformer_variables(const TransformerConfig& config) {
  Graph graph("transformer");
  nn::Context context(graph, nn::Mode::inference);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {1, 1}});
  Value* lengths = graph.add_input(InputRole::input, "lengths", {DataType::int32, {1}});
  Value* encoded = transformer_encoder(context, config, tokens, lengths);
  transformer_logits(context, config, transformer_decoder(context, config, tokens, encoded, lengths));
  return context.variables();
}

}  // namespace tessera::models
