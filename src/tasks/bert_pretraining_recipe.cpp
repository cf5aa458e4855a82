// Pretraining of BERT as recipes ask for it: on token shards.
#include <filesystem>
#include <memory>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/data/token_shards.h"
#include "tessera/models/bert_files.h"
#include "tessera/tasks/bert_pretraining.h"
#include "tessera/tasks/masked_language_model.h"
#include "tessera/train/task_registry.h"

#include "tasks/data_kind.h"
#include "tasks/row_data.h"
#include "tasks/token_data.h"

namespace tessera::tasks {
namespace {

constexpr auto kPairs = data::TokenRowKind::pairs;
const BertPretrainingOptions kDefaults;

std::vector<Option> model_options() {
  const auto count = [](const char* key, const char* documentation) {
    return Option{.key = key,
                  .value = int64_t{0},
                  .documentation = std::string(documentation) + "; 0: as the size says",
                  .limits = Limits::between(0, 65536)};
  };
  return {{.key = "size",
           .value = std::string("tiny"),
           .documentation = "`base` and `large` of Devlin et al. 2019, `tiny` of Turc et al. 2019",
           .choices = {"tiny", "base", "large"}},
          count("width", "Numbers that a token is represented by"),
          count("heads", "Of each attention; a divisor of the width"),
          count("layers", "Attention and two linear layers each"),
          count("inner", "Width between those two"),
          {.key = "positions",
           .value = kDefaults.network.positions,
           .documentation = "Tokens of a row that the network can take",
           .limits = Limits::between(5, 65536)},
          {.key = "dropout",
           .value = kDefaults.network.dropout,
           .documentation = "Probability with which training zeroes the embeddings and what a layer adds",
           .limits = Limits::fraction()}};
}

std::vector<Option> data_options() {
  return with_row_options({path_option("A folder of token shards, which `tessera data tokenize` wrote"),
                           {.key = "tokens",
                            .value = kDefaults.tokens,
                            .documentation = "Tokens of a row",
                            .limits = Limits::between(5, 65536)},
                           {.key = "masked",
                            .value = kDefaults.masked,
                            .documentation = "Share of the places to be filled in",
                            .limits = {.low = 0, .high = 1, .low_open = true}}});
}

models::BertConfig network_of(const Options& settings) {
  const std::string& size = settings.text("model.size");
  models::BertConfig config = size == "base"    ? models::bert_base()
                              : size == "large" ? models::bert_large()
                                                : models::bert_tiny();
  const auto set = [&](const char* key, int64_t& value) {
    if (const int64_t given = settings.integer(key); given > 0) value = given;
  };
  set("model.width", config.width);
  set("model.heads", config.heads);
  set("model.layers", config.layers);
  set("model.inner", config.inner);
  set("model.positions", config.positions);
  config.dropout = settings.real("model.dropout");
  return config;
}

BertPretrainingOptions options_of(const Options& settings, const data::TokenSetHeader& header) {
  require(header.mask.has_value(), ErrorCode::invalid_argument,
          "{}: the vocabulary has no token that stands for what is masked, such as [MASK]",
          settings.text("data.path"));
  BertPretrainingOptions options{.network = network_of(settings),
                                 .tokens = settings.integer("data.tokens"),
                                 .mask = *header.mask,
                                 .kept = {},
                                 .masked = settings.real("data.masked")};
  options.network.vocabulary = header.vocabulary;
  options.network.padding = header.padding.value_or(0);
  for (const std::optional<int32_t>& token : {header.begin, header.separator})
    if (token) options.kept.push_back(*token);
  return options;
}

// Rows that are tested on, with gaps, and how people read what fills them.
train::PredictionSet gaps_of(const std::shared_ptr<const data::TokenSet>& set,
                             const BertPretrainingOptions& options, const Options& settings) {
  MaskedLanguageModelOptions gaps{.vocabulary = options.network.vocabulary,
                                  .mask = options.mask,
                                  .kept = options.kept,
                                  .masked = options.masked};
  gaps.kept.push_back(options.network.padding);
  Feeds rows = test_rows_of(set, settings, kPairs);
  for (auto& [name, tensor] : with_gaps(rows.at("tokens"), gaps)) rows.insert_or_assign(name, tensor);
  return {rows_in_order(std::move(rows), settings),
          masked_language_model_text(gaps, token_text(settings.text("data.path")))};
}

train::Workload create(const Options& settings) {
  const auto set = std::make_shared<const data::TokenSet>(settings.text("data.path"));
  const BertPretrainingOptions options = options_of(settings, set->header());
  train::Workload workload =
      token_workload(bert_pretraining(options), set, bert_pretraining_evaluator(), settings, kPairs);
  workload.write_beside_weights = [network = options.network](const std::filesystem::path& folder) {
    models::write_bert_config(folder / "config.json", network);
  };
  workload.predictions = [set, options, settings] { return gaps_of(set, options, settings); };
  return workload;
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = of_data(check_path(settings.section("data")));
  const models::BertConfig network = network_of(settings);
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

const train::TaskRegistration kRegistration(
    {.name = "bert_pretraining",
     .documentation =
         "Fills gaps in pairs of texts, and tells whether the second follows the first (BERT, Devlin et al. "
         "2019).",
     .sections = {{"model", model_options()}, {"data", data_options()}},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
