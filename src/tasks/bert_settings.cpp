#include "tasks/bert_settings.h"

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/models/bert_files.h"

#include "tasks/sized_network.h"

namespace tessera::tasks {
namespace {

models::BertConfig named_size(const Options& settings) {
  const std::string& size = settings.text("model.size");
  models::BertConfig config = size == "base"    ? models::bert_base()
                              : size == "large" ? models::bert_large()
                                                : models::bert_tiny();
  take_if_said(settings, "model.width", config.width);
  take_if_said(settings, "model.heads", config.heads);
  take_if_said(settings, "model.layers", config.layers);
  take_if_said(settings, "model.inner", config.inner);
  take_if_said(settings, "model.positions", config.positions);
  config.dropout = settings.real("model.dropout");
  config.attention_dropout = settings.real("model.attention_dropout");
  return config;
}

}  // namespace

std::vector<Option> bert_options() {
  const models::BertConfig defaults;
  return {
      {.key = "config",
       .value = std::string(),
       .documentation = "A `config.json` of transformers, which says all of what follows; empty: the keys do",
       .is_path = true,
       .resuming = Resuming::free},
      {.key = "size",
       .value = std::string("tiny"),
       .documentation = "`base` and `large` of Devlin et al. 2019, `tiny` of Turc et al. 2019",
       .choices = {"tiny", "base", "large"}},
      sized_option("width", "Numbers that a token is represented by"),
      sized_option("heads", "Of each attention; a divisor of the width"),
      sized_option("layers", "Attention and two linear layers each"),
      sized_option("inner", "Width between those two"),
      {.key = "positions",
       .value = defaults.positions,
       .documentation = "Tokens of a row that the network can take",
       .limits = Limits::between(5, 65536)},
      {.key = "dropout",
       .value = defaults.dropout,
       .documentation = "Probability with which training zeroes the embeddings and what a layer adds",
       .limits = Limits::fraction()},
      {.key = "attention_dropout",
       .value = defaults.attention_dropout,
       .documentation = "Probability with which training zeroes the weights of attention; 0.1 in the paper",
       .limits = Limits::fraction()}};
}

models::BertConfig bert_of(const Options& settings, int64_t vocabulary) {
  const std::string& file = settings.text("model.config");
  models::BertConfig config = file.empty() ? named_size(settings) : models::read_bert_config(file);
  require(file.empty() || vocabulary <= config.vocabulary, ErrorCode::invalid_argument,
          "{} tokens, the network of {} has a vocabulary of {}", vocabulary, file, config.vocabulary);
  if (file.empty()) config.vocabulary = vocabulary;
  return config;
}

std::vector<Contradiction> check_bert(const Options& settings) {
  std::vector<Contradiction> found;
  if (!settings.text("model.config").empty()) return found;  // what a file says is checked when it is read
  const models::BertConfig network = named_size(settings);
  if (network.width % network.heads != 0)
    found.push_back(
        {{"model.width", "model.heads"},
         fmt::format("the width ({}) is no multiple of the heads ({})", network.width, network.heads)});
  if (const int64_t tokens = settings.integer("data.tokens"); tokens > network.positions)
    found.push_back(
        {{"data.tokens", "model.positions"},
         fmt::format("'data.tokens' ({}) is more than 'model.positions' ({})", tokens, network.positions)});
  return found;
}

std::function<std::map<std::string, Tensor>(const std::filesystem::path& path)> starting_bert(
    const models::BertConfig& network, models::BertForm form) {
  return [network, form](const std::filesystem::path& path) {
    std::map<std::string, Tensor> weights = models::load_pretrained_bert(path, network, form);
    for (const nn::Variable& variable : models::bert_variables(network, form)) {
      if (!weights.contains(variable.name))
        log_info("{}: no '{}', which starts at random", path.string(), variable.name);
    }
    return weights;
  };
}

}  // namespace tessera::tasks
