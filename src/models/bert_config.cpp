#include "tessera/base/error.h"
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
  real("attention_probs_dropout_prob", config.attention_dropout);
  real("layer_norm_eps", config.epsilon);
  real("initializer_range", config.deviation);
}

const char* class_of(BertForm form) {
  switch (form) {
    case BertForm::pretraining:
      return "BertForPreTraining";
    case BertForm::encoder:
      return "BertModel";
    case BertForm::sequence_classification:
      return "BertForSequenceClassification";
    case BertForm::token_classification:
      return "BertForTokenClassification";
    case BertForm::question_answering:
      return "BertForQuestionAnswering";
  }
  return "";
}

// {"0": "first", "1": "second"}.
std::vector<std::string> read_labels(const ConfigFile& file) {
  const nlohmann::json names = file.value("id2label");
  std::vector<std::string> labels;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = names.is_object() ? names.find(std::to_string(i)) : names.end();
    require(found != names.end() && found->is_string(), ErrorCode::invalid_file,
            "{}: 'id2label' has no name of label {}", file.name(), i);
    labels.push_back(found->get<std::string>());
  }
  return labels;
}

void write_labels(const std::vector<std::string>& labels, nlohmann::json& json) {
  for (size_t i = 0; i < labels.size(); ++i) {
    json["id2label"][std::to_string(i)] = labels[i];
    json["label2id"][labels[i]] = i;
  }
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
  BertConfig config{.attention_dropout = 0.1};  // what a file without it means
  visit(
      config, [&](const char* key, int64_t& value, int64_t least) { file.read(key, value, least); },
      [&](const char* key, double& value) { file.read_if_there(key, value); });
  config.labels = read_labels(file);
  return config;
}

void write_bert_config(const std::filesystem::path& path, const BertConfig& config, BertForm form) {
  nlohmann::json json = {{"model_type", "bert"}, {"architectures", {class_of(form)}}, {"hidden_act", "gelu"}};
  visit(
      config, [&](const char* key, int64_t value, int64_t) { json[key] = value; },
      [&](const char* key, double value) { json[key] = value; });
  write_labels(config.labels, json);
  write_config(path, json);
}

}  // namespace tessera::models
