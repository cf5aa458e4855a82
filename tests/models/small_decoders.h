// The networks of tests/golden/decoder.py.
#pragma once

#include <string>
#include <vector>

#include "tessera/models/decoder.h"

namespace tessera::testing {

struct SmallDecoder {
  std::string name;
  models::DecoderConfig config;
};

inline std::vector<SmallDecoder> small_decoders() {
  const models::DecoderConfig gpt2{
      .vocabulary = 29, .width = 16, .layers = 2, .heads = 2, .inner = 64, .positions = 12};
  models::DecoderConfig untied = gpt2;
  untied.inner = 40;
  untied.epsilon = 1e-3;
  untied.tied = false;
  const models::DecoderConfig llama{.form = models::DecoderForm::llama,
                                    .vocabulary = 29,
                                    .width = 16,
                                    .layers = 2,
                                    .heads = 4,
                                    .inner = 24,
                                    .positions = 12,
                                    .epsilon = 1e-6,
                                    .tied = false,
                                    .key_heads = 2};
  models::DecoderConfig tied = llama;
  tied.epsilon = 1e-3;
  tied.tied = true;
  tied.head_width = 6;
  tied.rotary_base = 300;
  tied.attention_bias = true;
  tied.inner_bias = true;
  models::DecoderConfig scaled = llama;
  scaled.head_width = 8;
  scaled.rotary_base = 300;
  scaled.rotary_scaling = nn::RotaryScaling{.factor = 6, .positions = 64};
  return {{"gpt2", gpt2},
          {"gpt2_untied", untied},
          {"llama", llama},
          {"llama_tied", tied},
          {"llama_scaled", scaled}};
}

}  // namespace tessera::testing
