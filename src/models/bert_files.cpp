#include "tessera/models/bert_files.h"

#include <algorithm>
#include <string_view>

#include "models/transformers_files.h"

namespace tessera::models {
namespace {

constexpr std::string_view kEncoder = "bert.";
constexpr std::string_view kPooler = "bert.pooler.";
constexpr std::string_view kPositions = "bert.embeddings.position_ids";  // no weight

bool is_of_head(std::string_view name) {
  for (const char* head : {"cls.", "classifier.", "qa_outputs."}) {
    if (name.starts_with(head)) return true;
  }
  return false;
}

void replace_end(std::string& name, std::string_view end, std::string_view by) {
  if (name.ends_with(end)) name.replace(name.size() - end.size(), end.size(), by);
}

std::string own_name(const std::string& stored) {
  std::string name = stored;
  if (!name.starts_with(kEncoder) && !is_of_head(name)) name.insert(0, kEncoder);
  replace_end(name, "LayerNorm.gamma", "LayerNorm.weight");
  replace_end(name, "LayerNorm.beta", "LayerNorm.bias");
  return name;
}

StoredNames names_of(BertForm form) {
  return {.own = own_name,
          .stored =
              [form](const std::string& own) {
                return form == BertForm::encoder ? own.substr(kEncoder.size()) : own;
              },
          .ignored = [](const std::string& own) { return own == kPositions; },
          .copies = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                     {"cls.predictions.decoder.bias", "cls.predictions.bias"}}};
}

}  // namespace

std::map<std::string, Tensor> load_bert(const std::filesystem::path& path, const BertConfig& config,
                                        BertForm form) {
  return load_stored(path, bert_variables(config, form), names_of(form));
}

std::map<std::string, Tensor> load_pretrained_bert(const std::filesystem::path& path,
                                                   const BertConfig& config, BertForm form) {
  const std::vector<nn::Variable> variables = bert_variables(config, form);
  StoredNames names = names_of(form);
  names.optional = [](const std::string& own) { return own.starts_with(kPooler) || is_of_head(own); };
  names.ignored = [&](const std::string& own) {
    const bool is_wanted =
        std::ranges::any_of(variables, [&](const nn::Variable& one) { return one.name == own; });
    return own == kPositions || (!is_wanted && names.optional(own));
  };
  return load_stored(path, variables, names);
}

void save_bert(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights,
               const BertConfig& config, BertForm form) {
  save_stored(path, weights, bert_variables(config, form), names_of(form));
}

}  // namespace tessera::models
