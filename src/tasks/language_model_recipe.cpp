// Language models as recipes ask for them, on any kind of text.
#include <filesystem>

#include <fmt/format.h>

#include "tessera/models/decoder_files.h"
#include "tessera/tasks/language_model.h"
#include "tessera/train/task_registry.h"

#include "tasks/row_data.h"
#include "tasks/text_data.h"

namespace tessera::tasks {
namespace {

using models::DecoderForm;

const LanguageModelOptions kDefaults;

std::vector<Option> model_options() {
  const models::DecoderConfig& network = kDefaults.network;
  std::vector<Option> options =
      transformer_options(network.width, network.heads, network.layers, network.dropout);
  options.insert(options.begin(), {.key = "form",
                                   .value = std::string("gpt2"),
                                   .documentation = "`gpt2`, or `llama`: RMS norms, rotary positions, SwiGLU",
                                   .choices = {"gpt2", "llama"}});
  options.push_back({.key = "inner",
                     .value = int64_t{0},
                     .documentation =
                         "Width between the linear layers after attention; 0: four times the width, of "
                         "`llama` 8/3 of it",
                     .limits = Limits::between(0, 262144)});
  options.push_back(
      {.key = "key_heads",
       .value = int64_t{0},
       .documentation = "Of `llama`: heads of keys and values, which several heads share; 0: as many",
       .limits = Limits::between(0, 65536)});
  return options;
}

// All but the vocabulary.
models::DecoderConfig network_of(const Options& settings) {
  const int64_t width = settings.integer("model.width");
  models::DecoderConfig network{
      .form = settings.text("model.form") == "llama" ? DecoderForm::llama : DecoderForm::gpt2,
      .width = width,
      .layers = settings.integer("model.layers"),
      .heads = settings.integer("model.heads"),
      .inner = settings.integer("model.inner"),
      .positions = settings.integer("data.tokens"),
      .dropout = settings.real("model.dropout"),
      .key_heads = settings.integer("model.key_heads")};
  // SwiGLU has three weights in place of two, which are as many numbers.
  if (network.inner == 0) network.inner = network.form == DecoderForm::gpt2 ? 4 * width : 8 * width / 3;
  return network;
}

train::Workload create(const Options& settings) {
  const std::shared_ptr<const Texts> texts = open_texts(settings);
  LanguageModelOptions options{.network = network_of(settings), .tokens = settings.integer("data.tokens")};
  options.network.vocabulary = texts->vocabulary();
  train::Workload workload =
      text_workload(language_model(options), texts, language_model_evaluator(), settings);
  workload.predictions = [texts, settings]() -> train::PredictionSet {
    return {rows_in_order({{"tokens", texts->rows_to_look_at()}}, settings),
            language_model_text(texts->shown())};
  };
  workload.write_beside_weights = [network = options.network](const std::filesystem::path& folder) {
    models::write_decoder_config(folder / "config.json", network);
  };
  workload.continuation = [texts, settings, network = options.network] {
    train::TextContinuation continuation = continuation_of(*texts, settings);
    continuation.passes = [network](int64_t capacity) { return language_model_passes(network, capacity); };
    return continuation;
  };
  return workload;
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_text(settings);
  const models::DecoderConfig network = network_of(settings);
  if (network.form == DecoderForm::gpt2 && network.key_heads != 0)
    found.push_back({{"model.key_heads", "model.form"}, "'model.key_heads' is of the form 'llama'"});
  if (network.key_heads != 0 && network.heads % network.key_heads != 0)
    found.push_back({{"model.heads", "model.key_heads"},
                     fmt::format("'model.heads' ({}) is no multiple of 'model.key_heads' ({})", network.heads,
                                 network.key_heads)});
  if (network.form == DecoderForm::llama && network.width / network.heads % 2 != 0)
    found.push_back({{"model.width", "model.heads"},
                     fmt::format("heads of {} numbers: rotary positions take them in pairs",
                                 network.width / network.heads)});
  return found;
}

const train::TaskRegistration kRegistration(
    {.name = "language_model",
     .documentation = "Goes on with text, token by token (Radford et al. 2019, Touvron et al. 2023).",
     .sections = {{"model", model_options()}, text_options(kDefaults.tokens)},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
