// Pretraining of BERT as recipes ask for it: on token shards.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/data/token_shards.h"
#include "tessera/models/bert_files.h"
#include "tessera/tasks/bert_pretraining.h"
#include "tessera/tasks/masked_language_model.h"
#include "tessera/train/task_registry.h"

#include "tasks/bert_settings.h"
#include "tasks/data_kind.h"
#include "tasks/row_data.h"
#include "tasks/token_data.h"

namespace tessera::tasks {
namespace {

constexpr auto kPairs = data::TokenRowKind::pairs;
const BertPretrainingOptions kDefaults;

std::vector<Option> data_options() {
  return with_row_options(
      {path_option("A folder of token shards, which `tessera data tokenize` wrote"),
       {.key = "tokens",
        .value = kDefaults.tokens,
        .documentation = "Tokens of a row",
        .limits = Limits::between(5, 65536)},
       {.key = "packed",
        .value = kDefaults.pairs,
        .documentation = "Pairs of texts that share a row, at most, where they fit: less padding",
        .limits = Limits::between(1, 64)},
       {.key = "unpadded",
        .value = false,
        .documentation =
            "Whether training computes nothing of padding; each batch then has pairs of all lengths",
        .resuming = Resuming::fixed},
       {.key = "masked",
        .value = kDefaults.masked,
        .documentation = "Share of the places to be filled in",
        .limits = {.low = 0, .high = 1, .low_open = true}}});
}

// Whole tiles of matrix products, and no more than rows have.
int64_t list_of(const std::shared_ptr<const data::TokenSet>& set, const Options& settings) {
  constexpr int64_t kTile = 16;
  const int64_t rows = settings.integer("train.batch") * settings.integer("data.tokens");
  return std::min(round_up(most_tokens(set, settings, kPairs), kTile), rows);
}

BertPretrainingOptions options_of(const Options& settings, const std::shared_ptr<const data::TokenSet>& set) {
  const data::TokenSetHeader& header = set->header();
  require(header.mask.has_value(), ErrorCode::invalid_argument,
          "{}: the vocabulary has no token that stands for what is masked, such as [MASK]",
          settings.text("data.path"));
  BertPretrainingOptions options{.network = bert_of(settings, header.vocabulary),
                                 .tokens = settings.integer("data.tokens"),
                                 .pairs = settings.integer("data.packed"),
                                 .mask = *header.mask,
                                 .kept = {},
                                 .masked = settings.real("data.masked")};
  if (settings.boolean("data.unpadded")) options.list = list_of(set, settings);
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
  const BertPretrainingOptions options = options_of(settings, set);
  train::Workload workload =
      token_workload(bert_pretraining(options), set, bert_pretraining_evaluator(), settings, kPairs);
  workload.starting_weights = starting_bert(options.network, models::BertForm::pretraining);
  workload.write_beside_weights = [network = options.network](const std::filesystem::path& folder) {
    models::write_bert_config(folder / "config.json", network);
  };
  workload.predictions = [set, options, settings] { return gaps_of(set, options, settings); };
  return workload;
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = of_data(check_path(settings.section("data")));
  for (Contradiction& one : check_bert(settings)) found.push_back(std::move(one));
  if (settings.boolean("data.unpadded") && settings.integer("data.packed") > 1)
    found.push_back({{"data.unpadded", "data.packed"},
                     "'data.unpadded' leaves no padding that 'data.packed' could fill: choose one of them"});
  return found;
}

const train::TaskRegistration kRegistration(
    {.name = "bert_pretraining",
     .documentation =
         "Fills gaps in pairs of texts, and tells whether the second follows the first (BERT, Devlin et al. "
         "2019).",
     .sections = {{"model", bert_options()}, {"data", data_options()}},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
