// Masked language models as recipes ask for them: of the bytes of text files.
#include "tessera/data/text.h"
#include "tessera/tasks/masked_language_model.h"
#include "tessera/train/task_registry.h"

#include "tasks/row_data.h"

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
  return with_row_options({{.key = "path",
                            .value = std::string(),
                            .documentation = "A text file, or a folder of them; tokens are its bytes",
                            .is_path = true,
                            .resuming = Resuming::free},
                           {.key = "tokens",
                            .value = kDefaults.tokens,
                            .documentation = "Bytes of a row",
                            .limits = Limits::between(2, 65536)},
                           {.key = "masked",
                            .value = kDefaults.masked,
                            .documentation = "Share of the places to be filled in",
                            .limits = {.low = 0, .high = 1, .low_open = true}}});
}

train::Workload create(const Options& settings) {
  const int64_t tokens = settings.integer("data.tokens");
  const Tensor windows = data::read_byte_windows(settings.text("data.path"), tokens);
  const MaskedLanguageModelOptions options{.tokens = tokens,
                                           .width = settings.integer("model.width"),
                                           .heads = settings.integer("model.heads"),
                                           .layers = settings.integer("model.layers"),
                                           .dropout = settings.real("model.dropout"),
                                           .masked = settings.real("data.masked")};
  const data::HeldOut rows = data::hold_out({{"tokens", windows}}, settings.real("data.test_share"));
  train::Workload workload =
      row_workload(masked_language_model(options), rows, masked_language_model_evaluator(), settings);
  workload.predictions = [test = rows.test.at("tokens"), options, settings]() -> train::PredictionSet {
    return {rows_in_order(with_gaps(test, options), settings), masked_language_model_text(options)};
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
