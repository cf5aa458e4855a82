// Masked language models as recipes ask for them: of the bytes of text files, or of token shards.
#include <memory>

#include "tessera/tasks/masked_language_model.h"
#include "tessera/train/task_registry.h"

#include "tasks/row_data.h"
#include "tasks/text_data.h"

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
  return text_options(kDefaults.tokens, {{.key = "masked",
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

train::Workload create(const Options& settings) {
  const auto text = std::make_shared<const TextData>(settings);
  MaskedLanguageModelOptions options = options_of(settings);
  options.vocabulary = text->vocabulary();
  if (const data::TokenSetHeader* header = text->header()) {
    options.mask = header->mask;
    if (header->separator) options.kept.push_back(*header->separator);
  }
  train::Workload workload =
      text->workload(masked_language_model(options), masked_language_model_evaluator());
  workload.predictions = [text, options, settings]() -> train::PredictionSet {
    return {rows_in_order(with_gaps(text->tokens_to_look_at(), options), settings),
            masked_language_model_text(options, text->shown())};
  };
  return workload;
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
