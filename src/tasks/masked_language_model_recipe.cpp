// Masked language models as recipes ask for them: of the bytes of text files, or of token shards.
#include <filesystem>
#include <memory>

#include "tessera/data/text.h"
#include "tessera/data/token_shards.h"
#include "tessera/tasks/masked_language_model.h"
#include "tessera/train/task_registry.h"

#include "tasks/row_data.h"
#include "tasks/token_data.h"

namespace tessera::tasks {
namespace {

const MaskedLanguageModelOptions kDefaults;

std::vector<Option> model_options() {
  const auto count = [](const char* key, int64_t value, const char* documentation) {
    return Option{
        .key = key, .value = value, .documentation = documentation, .limits = Limits::between(1, 65536)};
  };
  return {count("width", kDefaults.width, "Numbers that a token is represented by"),
          count("heads", kDefaults.heads, "Of each attention; a divisor of the width"),
          count("layers", kDefaults.layers, "Attention and two linear layers each"),
          {.key = "dropout",
           .value = kDefaults.dropout,
           .documentation = "Probability with which training zeroes what a layer adds",
           .limits = Limits::fraction()}};
}

std::vector<Option> data_options() {
  return with_row_options(
      {{.key = "kind",
        .value = std::string("bytes"),
        .documentation = "What tokens are: `bytes` of text files, or `tokens` of a folder that "
                         "`tessera data tokenize` wrote",
        .choices = {"bytes", "tokens"},
        .resuming = Resuming::fixed},
       {.key = "path",
        .value = std::string(),
        .documentation = "A text file, or a folder of them; of `tokens` the folder of the shards",
        .is_path = true,
        .resuming = Resuming::free},
       {.key = "tokens",
        .value = kDefaults.tokens,
        .documentation = "Tokens of a row",
        .limits = Limits::between(2, 65536)},
       {.key = "masked",
        .value = kDefaults.masked,
        .documentation = "Share of the places to be filled in",
        .limits = {.low = 0, .high = 1, .low_open = true}}});
}

MaskedLanguageModelOptions options_of(const Options& settings) {
  return {.tokens = settings.integer("data.tokens"),
          .width = settings.integer("model.width"),
          .heads = settings.integer("model.heads"),
          .layers = settings.integer("model.layers"),
          .dropout = settings.real("model.dropout"),
          .masked = settings.real("data.masked")};
}

train::Workload of_bytes(const Options& settings) {
  const MaskedLanguageModelOptions options = options_of(settings);
  const Tensor windows = data::read_byte_windows(settings.text("data.path"), options.tokens);
  const data::HeldOut rows = data::hold_out({{"tokens", windows}}, settings.real("data.test_share"));
  train::Workload workload =
      row_workload(masked_language_model(options), rows, masked_language_model_evaluator(), settings);
  workload.predictions = [test = rows.test.at("tokens"), options, settings]() -> train::PredictionSet {
    return {rows_in_order(with_gaps(test, options), settings), masked_language_model_text(options)};
  };
  return workload;
}

train::Workload of_tokens(const Options& settings) {
  const std::filesystem::path folder = settings.text("data.path");
  const auto set = std::make_shared<const data::TokenSet>(folder);
  MaskedLanguageModelOptions options = options_of(settings);
  options.vocabulary = set->header().vocabulary;
  options.mask = set->header().mask;
  if (set->header().separator) options.kept.push_back(*set->header().separator);
  train::Workload workload =
      token_workload(masked_language_model(options), set, masked_language_model_evaluator(), settings);
  workload.predictions = [set, folder, options, settings]() -> train::PredictionSet {
    return {rows_in_order(with_gaps(test_rows_of(set, settings).at("tokens"), options), settings),
            masked_language_model_text(options, token_text(folder))};
  };
  return workload;
}

train::Workload create(const Options& settings) {
  return settings.text("data.kind") == "tokens" ? of_tokens(settings) : of_bytes(settings);
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_given(settings, {"data.path"});
  if (settings.integer("data.tokens") % 2 != 0)
    found.push_back({{"data.tokens"}, "'data.tokens' must be even: rows have halves"});
  const int64_t width = settings.integer("model.width");
  if (const int64_t heads = settings.integer("model.heads"); width % heads != 0)
    found.push_back({{"model.width", "model.heads"},
                     fmt::format("'model.width' ({}) is no multiple of 'model.heads' ({})", width, heads)});
  return found;
}

const train::TaskRegistration kRegistration(
    {.name = "masked_language_model",
     .documentation =
         "Fills gaps in text, and tells whether two pieces of it stand in their order (Devlin et al. "
         "2019, Lan et al. 2020).",
     .sections = {{"model", model_options()}, {"data", data_options()}},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
