// Networks that go on with text: at each place they say which token comes next, by what stands up to it.
// Variables are named as transformers names them, so that files of either are those of the other;
// decoder_files.h reads and writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/nn/attention_parts.h"
#include "tessera/nn/context.h"

namespace tessera::models {

enum class DecoderForm : uint8_t {
  // GPT-2 (Radford et al. 2019), transformers' GPT2LMHeadModel: layer norms, a table of positions, GELU by
  // tanh, biases everywhere.
  gpt2,
  // Llama (Touvron et al. 2023, arXiv:2302.13971 and 2307.09288), transformers' LlamaForCausalLM: RMS norms,
  // rotary positions, SwiGLU, heads of keys that several heads of queries share, biases only where asked for.
  llama,
};

// The defaults are the smallest GPT-2.
struct DecoderConfig {
  DecoderForm form = DecoderForm::gpt2;
  int64_t vocabulary = 50257;
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t inner = 3072;      // width between the linear layers after attention
  int64_t positions = 1024;  // tokens of a row at most
  double dropout = 0;        // of the embeddings and of what each half of a layer adds
  double epsilon = 1e-5;     // of the norms
  double deviation = 0.02;   // of the weights at the start
  bool tied = true;          // the table of words is the output's weight as well
  // Of Llama's form alone.
  int64_t key_heads = 0;       // a divisor of the heads; 0: as many
  int64_t head_width = 0;      // an even number; 0: the heads divide the width
  double rotary_base = 10000;  // nn::rotary_angles()
  std::optional<nn::RotaryScaling> rotary_scaling = {};
  bool attention_bias = false;
  bool inner_bias = false;
  bool operator==(const DecoderConfig&) const = default;
};

// What the network says of each token: int32 [N, tokens] -> [N, tokens, width]. With a cache, of one row of
// which these tokens are a part; the cache's capacity is at most the positions. Throws
// Error(invalid_argument) where heads do not divide what they should, or rows have more tokens than there are
// positions.
Value* decoder(nn::Context& context, const DecoderConfig& config, Value* tokens,
               const nn::AttentionCache* cache = nullptr);
// Logits of the token after each place: [..., width] -> [..., vocabulary].
Value* decoder_logits(nn::Context& context, const DecoderConfig& config, Value* decoded);

// All of its variables.
std::vector<nn::Variable> decoder_variables(const DecoderConfig& config);

}  // namespace tessera::models
