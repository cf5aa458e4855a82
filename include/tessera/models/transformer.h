// The Transformer (Vaswani et al. 2017, arXiv:1706.03762): an encoder reads a text, and a decoder says what
// its translation is, token by token. One table of tokens serves both and the output. Variables are named as
// fairseq names them.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/nn/context.h"

namespace tessera::models {

// The defaults are fairseq's transformer_wmt_en_de, the paper's base.
struct TransformerConfig {
  int64_t vocabulary = 37000;  // of both languages together
  int64_t width = 512;         // an even multiple of the heads
  int64_t encoder_layers = 6;
  int64_t decoder_layers = 6;
  int64_t heads = 8;
  int64_t inner = 2048;          // width between the two linear layers of each layer
  int64_t positions = 1024;      // tokens of a row at most
  double dropout = 0.1;          // of the embeddings and of what each part of a layer adds
  double attention_dropout = 0;  // of the weights of all attentions
  bool pre_norm = false;         // norms what each part is given and the end, in place of each sum
  double epsilon = 1e-5;         // of the layer norms
  bool operator==(const TransformerConfig&) const = default;
};

inline TransformerConfig transformer_base(int64_t vocabulary) {
  return {.vocabulary = vocabulary};
}
// The paper's big, as fairseq's transformer_vaswani_wmt_en_de_big.
inline TransformerConfig transformer_big(int64_t vocabulary) {
  return {.vocabulary = vocabulary, .width = 1024, .heads = 16, .inner = 4096, .dropout = 0.3};
}

// What is said of each token of a text: tokens int32 [N, tokens] of which the first lengths[n] of a row
// count, int32 [N] -> [N, tokens, width]. Throws Error(invalid_argument) where the heads do not divide the
// width, or rows have more tokens than there are positions.
Value* transformer_encoder(nn::Context& context, const TransformerConfig& config, Value* tokens,
                           Value* lengths);
// What is said of the token after each place of a translation: tokens int32 [N, places], encoded and lengths
// of the texts -> [N, places, width]. No place sees those after it. Throws as transformer_encoder().
Value* transformer_decoder(nn::Context& context, const TransformerConfig& config, Value* tokens,
                           Value* encoded, Value* lengths);
// Logits of those tokens: [..., width] -> [..., vocabulary].
Value* transformer_logits(nn::Context& context, const TransformerConfig& config, Value* decoded);

// What a layer of the decoder attends to of encoded texts: fp32 [texts, heads, tokens, width / heads] each.
struct TransformerMemory {
  Value* keys;
  Value* values;
};
// Of each layer, for the steps of a translation: encoded [texts, tokens, width].
std::vector<TransformerMemory> transformer_memory(nn::Context& context, const TransformerConfig& config,
                                                  Value* encoded);
// A step of the translation of several texts at once, which are rows of as many translations each, one after
// another: R rows in all. What it needs of their tokens so far is kept in states that advance.
struct TransformerStep {
  Value* tokens;     // int32 [R], the newest of each row
  Value* parents;    // int32 [R], from which row of the step before each goes on
  Value* place;      // int32 [1], where they stand: 0 in the first step, and one more in each after it
  int64_t capacity;  // places that there are
  std::vector<TransformerMemory> memory;
  Value* lengths;  // int32 [texts]
};
// What is said of the token after `tokens`, [R, 1, width]. Throws as transformer_encoder().
Value* transformer_step(nn::Context& context, const TransformerConfig& config, const TransformerStep& step);

// All of its variables.
std::vector<nn::Variable> transformer_variables(const TransformerConfig& config);

}  // namespace tessera::models
