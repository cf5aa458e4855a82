// What the forms of models::decoder() consist of.
#pragma once

#include "tessera/models/decoder.h"

namespace tessera::models {

// Of one pass over tokens.
struct DecoderPass {
  const nn::AttentionCache* cache = nullptr;  // null: rows are whole
  Value* places = nullptr;  // int32 [tokens], not negative: where in its row each token stands

  // nn::causal_attention(), or that of the cache.
  Value* attend(nn::Context& context, Value* q, Value* k, Value* v) const;
};

// In the scope of the network: [N, tokens] -> [N, tokens, width].
Value* gpt2_decoder(nn::Context& context, const DecoderConfig& config, Value* tokens,
                    const DecoderPass& pass);
Value* llama_decoder(nn::Context& context, const DecoderConfig& config, Value* tokens,
                     const DecoderPass& pass);

// Of weights whose products are added to what was given: what two of each layer add up to begins as large as
// one of them.
double outward_deviation(const DecoderConfig& config);

}  // namespace tessera::models
