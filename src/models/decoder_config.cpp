#include <string>

#include "tessera/base/error.h"
#include "tessera/models/decoder_files.h"

#include "models/transformers_files.h"

namespace tessera::models {
namespace {

using Json = nlohmann::json;

// Numbers of a network under the names that config.json has for them. Calls `needed` with those that must be
// there, and `other` with those that have a default.
template <typename Config, typename Needed, typename Other>
void visit_gpt2(Config& config, const Needed& needed, const Other& other) {
  needed("vocab_size", config.vocabulary);
  needed("n_embd", config.width);
  needed("n_layer", config.layers);
  needed("n_head", config.heads);
  needed("n_positions", config.positions);
  other("n_inner", config.inner);
  other("resid_pdrop", config.dropout);
  other("layer_norm_epsilon", config.epsilon);
  other("initializer_range", config.deviation);
  other("tie_word_embeddings", config.tied);
}

template <typename Config, typename Needed, typename Other>
void visit_llama(Config& config, const Needed& needed, const Other& other) {
  needed("vocab_size", config.vocabulary);
  needed("hidden_size", config.width);
  needed("num_hidden_layers", config.layers);
  needed("num_attention_heads", config.heads);
  needed("intermediate_size", config.inner);
  needed("max_position_embeddings", config.positions);
  other("num_key_value_heads", config.key_heads);
  other("head_dim", config.head_width);
  other("rms_norm_eps", config.epsilon);
  other("rope_theta", config.rotary_base);
  other("initializer_range", config.deviation);
  other("attention_bias", config.attention_bias);
  other("mlp_bias", config.inner_bias);
  other("tie_word_embeddings", config.tied);
}

DecoderConfig read_gpt2(const ConfigFile& file) {
  file.expect({{"activation_function", "gelu_new"},
               {"scale_attn_weights", true},
               {"scale_attn_by_inverse_layer_idx", false},
               {"add_cross_attention", false}});
  DecoderConfig config;
  visit_gpt2(
      config, [&](const char* key, int64_t& value) { file.read(key, value); },
      [&](const char* key, auto& value) { file.read_if_there(key, value); });
  if (!file.has("n_inner")) config.inner = 4 * config.width;
  return config;
}

template <typename Scaling, typename Each>
void visit_scaling(Scaling& scaling, const Each& each) {
  each("factor", scaling.factor);
  each("low_freq_factor", scaling.low);
  each("high_freq_factor", scaling.high);
  each("original_max_position_embeddings", scaling.positions);
}

// Newer files have the base among what they say of positions.
void read_positions(const ConfigFile& file, DecoderConfig& config) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!file.has(key)) continue;
    const ConfigFile positions = file.part(key);
    const Json kind = positions.has("rope_type") ? positions.value("rope_type") : positions.value("type");
    require(kind.is_null() || kind == "default" || kind == "llama3", ErrorCode::unsupported,
            "{}: positions are scaled by {}, only \"default\" and \"llama3\" are supported", positions.name(),
            kind.dump());
    positions.expect({{"partial_rotary_factor", 1.0}});
    positions.read_if_there("rope_theta", config.rotary_base);
    if (kind != "llama3") continue;
    config.rotary_scaling.emplace();
    visit_scaling(*config.rotary_scaling,
                  [&](const char* name, auto& value) { positions.read(name, value); });
  }
}

DecoderConfig read_llama(const ConfigFile& file) {
  file.expect({{"hidden_act", "silu"}});
  // What a file that leaves it out means.
  DecoderConfig config{.form = DecoderForm::llama, .epsilon = 1e-6, .tied = false};
  visit_llama(
      config, [&](const char* key, int64_t& value) { file.read(key, value); },
      [&](const char* key, auto& value) { file.read_if_there(key, value); });
  read_positions(file, config);
  if (config.key_heads == config.heads) config.key_heads = 0;
  if (config.head_width * config.heads == config.width) config.head_width = 0;
  return config;
}

}  // namespace

DecoderConfig read_decoder_config(const std::filesystem::path& path) {
  const ConfigFile file(path);
  const Json type = file.value("model_type");
  if (type == "gpt2") return read_gpt2(file);
  if (type == "llama") return read_llama(file);
  fail(ErrorCode::unsupported, "{}: 'model_type' is {}, only \"gpt2\" and \"llama\" go on with text",
       file.name(), type.dump());
}

DecoderTokens read_decoder_tokens(const std::filesystem::path& path) {
  const ConfigFile file(path);
  int64_t vocabulary = 0;
  file.read("vocab_size", vocabulary);
  // None, one, or a list.
  const auto tokens_of = [&](const char* key) {
    Json tokens = file.value(key);
    if (tokens.is_null()) tokens = Json::array();
    if (!tokens.is_array()) tokens = Json::array({tokens});
    std::vector<int32_t> result;
    for (const Json& token : tokens) {
      require(token.is_number_integer(), ErrorCode::invalid_file, "{}: '{}' is {}, expected a token",
              file.name(), key, tokens.dump());
      const auto id = token.get<int64_t>();
      if (id >= 0 && id < vocabulary) result.push_back(static_cast<int32_t>(id));
    }
    return result;
  };
  DecoderTokens result{.begin = {}, .ends = tokens_of("eos_token_id")};
  if (const std::vector<int32_t> begin = tokens_of("bos_token_id"); !begin.empty())
    result.begin = begin.front();
  return result;
}

void write_decoder_config(const std::filesystem::path& path, const DecoderConfig& config) {
  Json json;
  const auto put = [&](const char* key, const auto& value) { json[key] = value; };
  if (config.form == DecoderForm::gpt2) {
    json = {{"model_type", "gpt2"},
            {"architectures", {"GPT2LMHeadModel"}},
            {"activation_function", "gelu_new"},
            {"embd_pdrop", config.dropout},
            // The weights of attention are not dropped.
            {"attn_pdrop", 0.0}};
    visit_gpt2(config, put, put);
  } else {
    json = {{"model_type", "llama"}, {"architectures", {"LlamaForCausalLM"}}, {"hidden_act", "silu"}};
    DecoderConfig whole = config;
    if (whole.key_heads == 0) whole.key_heads = whole.heads;
    if (whole.head_width == 0) whole.head_width = whole.width / whole.heads;
    visit_llama(whole, put, put);
    if (config.rotary_scaling) {
      Json& scaling = json["rope_scaling"] = {{"rope_type", "llama3"}};
      visit_scaling(*config.rotary_scaling,
                    [&](const char* key, const auto& value) { scaling[key] = value; });
    }
  }
  // transformers takes tokens for these of its own, which our vocabularies need not have.
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  write_config(path, json);
}

}  // namespace tessera::models
