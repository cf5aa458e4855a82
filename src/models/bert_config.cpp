#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/models/bert_files.h"

namespace tessera::models {
namespace {

using Json = nlohmann::json;

// A number of a network under the name that config.json has for it. Calls `integer` and `real` with each.
template <typename Config, typename Integer, typename Real>
void visit(Config& config, const Integer& integer, const Real& real) {
  integer("vocab_size", config.vocabulary);
  integer("hidden_size", config.width);
  integer("num_hidden_layers", config.layers);
  integer("num_attention_heads", config.heads);
  integer("intermediate_size", config.inner);
  integer("max_position_embeddings", config.positions);
  integer("type_vocab_size", config.segments);
  integer("pad_token_id", config.padding);
  real("hidden_dropout_prob", config.dropout);
  real("layer_norm_eps", config.epsilon);
  real("initializer_range", config.deviation);
}

// What a file may leave out, and the one value that is known.
void check_rest(const Json& json, const std::string& file) {
  const Json known = {
      {"model_type", "bert"},        {"hidden_act", "gelu"}, {"position_embedding_type", "absolute"},
      {"tie_word_embeddings", true}, {"is_decoder", false},  {"add_cross_attention", false}};
  for (const auto& [key, value] : known.items()) {
    require(!json.contains(key) || json.at(key) == value, ErrorCode::unsupported,
            "{}: '{}' is {}, only {} is supported", file, key, json.value(key, Json()).dump(), value.dump());
  }
}

}  // namespace

BertConfig read_bert_config(const std::filesystem::path& path) {
  const std::string file = path.string();
  const Json json = Json::parse(read_text_file(path), nullptr, false);
  require(json.is_object(), ErrorCode::invalid_file, "{}: no JSON object", file);
  check_rest(json, file);
  BertConfig config;
  visit(
      config,
      [&](const char* key, int64_t& value) {
        require(json.contains(key) && json.at(key).is_number_integer() &&
                    json.at(key).get<int64_t>() >= (key == std::string_view("pad_token_id") ? 0 : 1),
                ErrorCode::invalid_file, "{}: '{}' is {}, expected a whole number", file, key,
                json.value(key, Json()).dump());
        value = json.at(key).get<int64_t>();
      },
      [&](const char* key, double& value) {
        if (!json.contains(key)) return;
        require(json.at(key).is_number(), ErrorCode::invalid_file, "{}: '{}' is {}, expected a number", file,
                key, json.at(key).dump());
        value = json.at(key).get<double>();
      });
  return config;
}

void write_bert_config(const std::filesystem::path& path, const BertConfig& config, BertForm form) {
  Json json = {{"model_type", "bert"},
               {"architectures", {form == BertForm::encoder ? "BertModel" : "BertForPreTraining"}},
               {"hidden_act", "gelu"},
               // The weights of attention are not dropped.
               {"attention_probs_dropout_prob", 0.0}};
  const auto put = [&](const char* key, const auto& value) { json[key] = value; };
  visit(config, put, put);
  AtomicFile file(path);
  file.write(json.dump(2) + "\n");
  file.commit();
}

}  // namespace tessera::models
