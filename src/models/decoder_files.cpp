#include "tessera/models/decoder_files.h"

#include <string_view>

#include "models/transformers_files.h"

namespace tessera::models {
namespace {

constexpr const char* kOutput = "lm_head.weight";

// What is no weight: GPT-2's masks, and the score that hides what they cover; Llama's frequencies.
bool is_no_weight(const std::string& own) {
  return own.ends_with(".attn.bias") || own.ends_with(".attn.masked_bias") ||
         own.ends_with(".rotary_emb.inv_freq");
}

StoredNames names_of(const DecoderConfig& config) {
  const bool is_gpt2 = config.form == DecoderForm::gpt2;
  const std::string scope = is_gpt2 ? "transformer." : "model.";
  StoredNames names{.own =
                        [scope](const std::string& stored) {
                          return stored.starts_with(scope) || stored == kOutput ? stored : scope + stored;
                        },
                    .stored = [](const std::string& own) { return own; },
                    .ignored = is_no_weight};
  if (config.tied) names.copies = {{kOutput, scope + (is_gpt2 ? "wte.weight" : "embed_tokens.weight")}};
  return names;
}

}  // namespace

std::map<std::string, Tensor> load_decoder(const std::filesystem::path& path, const DecoderConfig& config) {
  return load_stored(path, decoder_variables(config), names_of(config));
}

void save_decoder(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights,
                  const DecoderConfig& config) {
  save_stored(path, weights, decoder_variables(config), names_of(config));
}

}  // namespace tessera::models
