// Translation as recipes ask for it: on token shards of texts beside their translations.
#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/data/parallel_tokens.h"
#include "tessera/tasks/translation.h"
#include "tessera/text/tokenizer.h"
#include "tessera/train/task_registry.h"

#include "tasks/data_kind.h"
#include "tasks/prefetch.h"
#include "tasks/row_data.h"
#include "tasks/sized_network.h"

namespace tessera::tasks {
namespace {

// Twice the longest text has room: a translation may be longer than what was trained on.
constexpr int64_t kGrowth = 2;

models::TransformerConfig network_of(const Options& settings, int64_t vocabulary) {
  models::TransformerConfig config =
      settings.text("model.size") == "base"  ? models::transformer_base(vocabulary)
      : settings.text("model.size") == "big" ? models::transformer_big(vocabulary)
                                             : TranslationOptions{}.network;
  take_if_said(settings, "model.width", config.width);
  take_if_said(settings, "model.heads", config.heads);
  take_if_said(settings, "model.encoder_layers", config.encoder_layers);
  take_if_said(settings, "model.decoder_layers", config.decoder_layers);
  take_if_said(settings, "model.inner", config.inner);
  config.vocabulary = vocabulary;
  config.positions = kGrowth * settings.integers("data.lengths").back();
  config.dropout = settings.get_or<double>("model.dropout", config.dropout);
  config.attention_dropout = settings.real("model.attention_dropout");
  config.pre_norm = settings.boolean("model.pre_norm");
  return config;
}

std::vector<Option> model_options() {
  return {{.key = "size",
           .value = std::string("tiny"),
           .documentation = "`base` and `big` of Vaswani et al. 2017; `tiny`: two layers of 128 on each side",
           .choices = {"tiny", "base", "big"}},
          sized_option("width", "Numbers that a token is represented by"),
          sized_option("heads", "Of each attention; a divisor of the width"),
          sized_option("encoder_layers", "Layers that read"),
          sized_option("decoder_layers", "Layers that say the translation"),
          sized_option("inner", "Width between the two linear layers of each"),
          {.key = "dropout",
           .value = models::TransformerConfig{}.dropout,
           .documentation = "Probability with which training zeroes the embeddings and what a layer adds",
           .limits = Limits::fraction(),
           .unset = "as the size says: of `big` 0.3, otherwise 0.1"},
          {.key = "attention_dropout",
           .value = models::TransformerConfig{}.attention_dropout,
           .documentation = "Probability with which training zeroes the weights of each attention",
           .limits = Limits::fraction()},
          {.key = "pre_norm",
           .value = false,
           .documentation = "Whether norms come before what a layer does, and not after it"}};
}

std::vector<Option> data_options() {
  return with_row_options(
      {path_option("A folder of token shards, which `tessera data tokenize --documents parallel` wrote"),
       {.key = "lengths",
        .value = data::ParallelOptions{}.lengths,
        .documentation =
            "Tokens of the rows, rising: a pair of texts takes the shortest that holds both, and is left "
            "out where none does. `train.batch` is of the longest; batches of shorter rows hold as many "
            "more as have the same number of tokens",
        .limits = Limits::between(2, 65536),
        .resuming = Resuming::fixed}});
}

std::vector<Option> search_options() {
  const train::BeamOptions usual;
  return {{.key = "beams",
           .value = usual.beams,
           .documentation = "Translations that are followed at once; 1: always the likeliest token",
           .limits = Limits::between(1, 64),
           .resuming = Resuming::free},
          {.key = "length_penalty",
           .value = usual.length_penalty,
           .documentation = "Scores are divided by the length to this power; larger: longer translations",
           .limits = Limits::between(-10, 10),
           .resuming = Resuming::free},
          {.key = "translated",
           .value = int64_t{0},
           .documentation = "How many test texts are translated to count BLEU; 0: all",
           .limits = Limits::between(0, 1e9),
           .resuming = Resuming::free}};
}

std::shared_ptr<const data::Source> batches_of(const std::shared_ptr<const data::TokenSet>& set,
                                               const Options& settings, data::TokenRowPart part) {
  const bool training = part == data::TokenRowPart::training;
  const std::vector<int64_t> lengths = settings.integers("data.lengths");
  const auto pairs = std::make_shared<data::ParallelTokens>(
      set, data::ParallelOptions{
               .lengths = lengths, .part = part, .test_share = settings.real("data.test_share")});
  const Prefetch prefetch = prefetch_of(settings);
  data::BatchOptions batches{.shuffle = training && settings.boolean("data.shuffle"),
                             .drop_last = training,
                             .seed = static_cast<uint64_t>(settings.integer("train.seed")),
                             .workers = prefetch.workers,
                             .prefetch = prefetch.batches};
  for (const int64_t length : lengths)
    batches.batch_sizes.push_back(settings.integer("train.batch") * lengths.back() / length);
  return std::make_shared<data::ExampleBatches>(pairs, batches);
}

TranslatorOptions translator_of(const Options& settings, const data::TokenSetHeader& header) {
  // ParallelTokens refuses shards without a separator.
  const int32_t end = header.separator.value_or(0);
  return {.search = {.beams = settings.integer("search.beams"),
                     .length_penalty = settings.real("search.length_penalty"),
                     .begin = header.begin.value_or(end),
                     .end = end},
          .lengths = settings.integers("data.lengths"),
          .most_growth = kGrowth};
}

std::vector<std::string> translate_texts(const train::Serving& serve,
                                         const models::TransformerConfig& network,
                                         const TranslatorOptions& options, const text::Tokenizer& tokenizer,
                                         const std::vector<std::string>& texts) {
  std::vector<std::vector<int32_t>> tokens(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) tokenizer.append_tokens(texts[i], tokens[i]);
  std::vector<std::string> translations;
  for (const std::vector<train::FoundText>& found : translate(serve, network, options, tokens))
    translations.push_back(found.empty() ? std::string() : tokenizer.decode(found.front().tokens));
  return translations;
}

train::Workload create(const Options& settings) {
  const std::filesystem::path folder = settings.text("data.path");
  const auto set = std::make_shared<const data::TokenSet>(folder);
  const models::TransformerConfig network = network_of(settings, set->header().vocabulary);
  const TranslatorOptions translator = translator_of(settings, set->header());
  const text::Tokenizer tokenizer = text::read_tokenizer(folder / "tokenizer");
  return {.task = translation({.network = network, .smoothing = settings.real("train.smoothing")}),
          .data = data_name(settings),
          .training = [=] { return batches_of(set, settings, data::TokenRowPart::training); },
          .test = [=]() -> train::TestSet {
            return {batches_of(set, settings, data::TokenRowPart::test),
                    translation_evaluator(
                        network,
                        {.text = [=](std::span<const int32_t> tokens) { return tokenizer.decode(tokens); },
                         .translator = translator,
                         .translated = settings.integer("search.translated")})};
          },
          .translation =
              [=](const train::Serving& serve, const train::SearchWishes& wishes,
                  const std::vector<std::string>& texts) {
                TranslatorOptions options = translator;
                options.search.beams = wishes.beams.value_or(options.search.beams);
                options.search.length_penalty = wishes.length_penalty.value_or(options.search.length_penalty);
                return translate_texts(serve, network, options, tokenizer, texts);
              }};
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = of_data(check_path(settings.section("data")));
  const std::vector<int64_t> lengths = settings.integers("data.lengths");
  if (lengths.empty() || !std::ranges::is_sorted(lengths, std::less_equal())) {
    found.push_back({{"data.lengths"}, "'data.lengths' must be numbers that rise"});
    return found;
  }
  const models::TransformerConfig network = network_of(settings, 1);
  if (network.width % network.heads != 0)
    found.push_back({{"model.width", "model.heads"},
                     fmt::format("a width of {} has no {} heads", network.width, network.heads)});
  if (network.width % 2 != 0 || network.width < 4)
    found.push_back(
        {{"model.width"},
         fmt::format("a width of {}: sinusoidal positions are an even number of at least 4", network.width)});
  return found;
}

const train::TaskRegistration kRegistration(
    {.name = "translation",
     .documentation = "Translates texts, by a Transformer (Vaswani et al. 2017); measured by BLEU.",
     .sections = {{"model", model_options()},
                  {"data", data_options()},
                  {"train",
                   {{.key = "smoothing",
                     .value = TranslationOptions{}.smoothing,
                     .documentation = "Label smoothing of the cross-entropy, as fairseq's",
                     .limits = Limits::fraction()}}},
                  {"search", search_options()}},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
