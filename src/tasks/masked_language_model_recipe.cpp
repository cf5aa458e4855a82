// Masked language models as recipes ask for them, of any kind of text.
#include <memory>

#include "tessera/tasks/masked_language_model.h"
#include "tessera/train/task_registry.h"

#include "tasks/row_data.h"
#include "tasks/text_data.h"

namespace tessera::tasks {
namespace {

const MaskedLanguageModelOptions kDefaults;

train::OptionSection data_options() {
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
  const std::shared_ptr<const Texts> texts = open_texts(settings);
  MaskedLanguageModelOptions options = options_of(settings);
  options.vocabulary = texts->vocabulary();
  const SpecialTokens special = texts->special();
  options.mask = special.mask;
  if (special.separator) options.kept.push_back(*special.separator);
  train::Workload workload =
      text_workload(masked_language_model(options), texts, masked_language_model_evaluator(), settings);
  workload.predictions = [texts, options, settings]() -> train::PredictionSet {
    return {rows_in_order(with_gaps(texts->rows_to_look_at(), options), settings),
            masked_language_model_text(options, texts->shown())};
  };
  return workload;
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_text(settings);
  if (settings.integer("data.tokens") % 2 != 0)
    found.push_back({{"data.tokens"}, "'data.tokens' must be even: rows have halves"});
  return found;
}

const train::TaskRegistration kRegistration(
    {.name = "masked_language_model",
     .documentation =
         "Fills gaps in text, and tells whether two pieces of it stand in their order (Devlin et al. "
         "2019, Lan et al. 2020).",
     .sections = {{"model", transformer_options(kDefaults.width, kDefaults.heads, kDefaults.layers,
                                                kDefaults.dropout)},
                  data_options()},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
