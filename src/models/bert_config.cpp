#include "tessera/models/bert_files.h"

#include "models/transformers_files.h"

namespace tessera::models {
namespace {

// A number of a network under the name that config.json has for it. Calls `integer` and `real` with each.
template <typename Config, typename Integer, typename Real>
void visit(Config& config, const Integer& integer, const Real& real) {
  integer("vocab_size", config.vocabulary, 1);
  integer("hidden_size", config.width, 1);
  integer("num_hidden_layers", config.layers, 1);
  integer("num_attention_heads", config.heads, 1);
  integer("intermediate_size", config.inner, 1);
  integer("max_position_embeddings", config.positions, 1);
  integer("type_vocab_size", config.segments, 1);
  integer("pad_token_id", config.padding, 0);
  real("hidden_dropout_prob", config.dropout);
  real("layer_norm_eps", config.epsilon);
  real("initializer_range", config.deviation);
}

}  // namespace

BertConfig read_bert_config(const std::filesystem::path& path) {
  const ConfigFile file(path);
  file.expect({{"model_type", "bert"},
               {"hidden_act", "gelu"},
               {"position_embedding_type", "absolute"},
               {"tie_word_embeddings", true},
               {"is_decoder", false},
               {"add_cross_attention", false}});
  BertConfig config;
  visit(
      config, [&](const char* key, int64_t& value, int64_t least) { file.read(key, value, least); },
      [&](const char* key, double& value) { file.read_if_there(key, value); });
  return config;
}

void write_bert_config(const std::filesystem::path& path, const BertConfig& config, BertForm form) {
  nlohmann::json json = {{"model_type", "bert"},
                         {"architectures", {form == BertForm::encoder ? "BertModel" : "BertForPreTraining"}},
                         {"hidden_act", "gelu"},
                         // The weights of attention are not dropped.
                         {"attention_probs_dropout_prob", 0.0}};
  visit(
      config, [&](const char* key, int64_t value, int64_t) { json[key] = value; },
      [&](const char* key, double value) { json[key] = value; });
  write_config(path, json);
}

}  // namespace tessera::models
