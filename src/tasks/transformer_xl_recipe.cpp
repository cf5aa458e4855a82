// Transformer-XL as recipes ask for it, on any kind of text that is one long text.
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/data/token_lanes.h"
#include "tessera/tasks/transformer_xl.h"
#include "tessera/train/task_registry.h"

#include "tasks/data_kind.h"
#include "tasks/prefetch.h"
#include "tasks/text_data.h"

namespace tessera::tasks {
namespace {

const TransformerXlOptions kDefaults;

Option count_option(const std::string& key, int64_t value, const std::string& documentation,
                    double least = 0) {
  return {
      .key = key, .value = value, .documentation = documentation, .limits = Limits::between(least, 65536)};
}

std::vector<Option> model_options() {
  const models::TransformerXlConfig& network = kDefaults.network;
  std::vector<Option> options = transformer_options(network.width, network.heads, network.layers, 0.0);
  options.push_back(count_option("inner", 0, "Width between the linear layers; 0: four times the width"));
  options.push_back(count_option("farthest", network.farthest,
                                 "Keys that are farther away are as far as that; 0: none is"));
  options.push_back({.key = "cutoffs",
                     .value = std::vector<int64_t>{},
                     .documentation = "First tokens of clusters of rarer tokens, rising: adaptive tables and "
                                      "softmax; none: one table"});
  options.push_back(count_option("narrowing", network.vocabulary.narrowing,
                                 "By which the width is divided from each cluster to the next", 1));
  return options;
}

train::OptionSection data_options() {
  std::vector<Option> options = text_options(kDefaults.tokens).options;
  std::erase_if(options, [](const Option& option) { return option.key == "shuffle"; });
  for (Option& option : options) {
    if (option.key == "tokens") option.documentation = "Tokens of a segment";
    if (option.key == "test_share") option.documentation = "Of the text, its end; it is not trained on";
  }
  const auto memory = [&](const char* key, int64_t value, const char* documentation, Resuming resuming) {
    Option option = count_option(key, value, documentation);
    option.resuming = resuming;
    options.push_back(std::move(option));
  };
  memory("memory", kDefaults.memory, "Tokens before a segment that training remembers", Resuming::fixed);
  memory("evaluation_memory", kDefaults.evaluation_memory, "Tokens that evaluation remembers",
         Resuming::free);
  return {"data", std::move(options), [] { return choices_of(text_kinds()); }};
}

TransformerXlOptions options_of(const Options& settings, int64_t vocabulary) {
  const int64_t width = settings.integer("model.width"), inner = settings.integer("model.inner");
  return {.network = {.vocabulary = {.tokens = vocabulary,
                                     .cutoffs = settings.integers("model.cutoffs"),
                                     .narrowing = settings.integer("model.narrowing")},
                      .width = width,
                      .layers = settings.integer("model.layers"),
                      .heads = settings.integer("model.heads"),
                      .inner = inner == 0 ? 4 * width : inner,
                      .dropout = settings.real("model.dropout"),
                      .farthest = settings.integer("model.farthest")},
          .tokens = settings.integer("data.tokens"),
          .memory = settings.integer("data.memory"),
          .evaluation_memory = settings.integer("data.evaluation_memory")};
}

std::shared_ptr<const data::TokenLanes> lanes(const Texts& texts, const Options& settings,
                                              data::TokenRowPart part) {
  const Prefetch prefetch = prefetch_of(settings);
  return std::make_shared<const data::TokenLanes>(
      texts.long_text(), data::TokenLaneOptions{.length = settings.integer("data.tokens"),
                                                .part = part,
                                                .test_share = settings.real("data.test_share"),
                                                .batch_size = settings.integer("train.batch"),
                                                .drop_last = part == data::TokenRowPart::training,
                                                .workers = prefetch.workers,
                                                .prefetch = prefetch.batches});
}

// What batches of the recipe's size have at most, by the batches themselves; several steps are built of one
// size. Of other sizes, such as that by which a finished run lists its variables, no batch is made.
MostLabels most_labels(const std::shared_ptr<const Texts>& texts, const Options& settings,
                       data::TokenRowPart part) {
  struct Counted {
    std::mutex mutex;
    std::map<int64_t, std::vector<int64_t>> of_ranks;
  };
  const std::vector<int64_t> cutoffs = settings.integers("model.cutoffs");
  if (cutoffs.empty()) return {};
  return [=, counted = std::make_shared<Counted>()](int64_t rows, int64_t ranks) -> std::vector<int64_t> {
    if (rows != settings.integer("train.batch")) return {};
    const std::lock_guard lock(counted->mutex);
    const auto known = counted->of_ranks.find(ranks);
    if (known != counted->of_ranks.end()) return known->second;
    return counted->of_ranks[ranks] = lanes(*texts, settings, part)->most_labels(cutoffs, ranks);
  };
}

// How characters are counted; shards need not have a tokenizer that can be read.
std::function<std::string(std::span<const int32_t> tokens)> text_of(const Texts& texts) {
  try {
    return texts.coding().text;
  } catch (const Error& error) {
    log_warning("characters are not counted: {}", error.what());
    return {};
  }
}

train::Workload create(const Options& settings) {
  const std::shared_ptr<const Texts> texts = open_texts(settings);
  TransformerXlOptions options = options_of(settings, texts->vocabulary());
  nn::check_adaptive(options.network.vocabulary, options.network.width);
  options.training_labels = most_labels(texts, settings, data::TokenRowPart::training);
  options.evaluation_labels = most_labels(texts, settings, data::TokenRowPart::test);
  return {
      .task = transformer_xl(options),
      .data = data_name(settings),
      .training = [texts, settings] { return lanes(*texts, settings, data::TokenRowPart::training); },
      .test = [texts, settings]() -> train::TestSet {
        return {lanes(*texts, settings, data::TokenRowPart::test), transformer_xl_evaluator(text_of(*texts))};
      },
      .continuation =
          [texts, settings, options] {
            train::TextContinuation continuation = continuation_of(*texts, settings);
            // What is older than the memory is forgotten token by token.
            continuation.window = int64_t{1} << 40;
            continuation.passes = [options](int64_t capacity) {
              return transformer_xl_passes(options.network, std::min(options.evaluation_memory, capacity));
            };
            return continuation;
          }};
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_text(settings);
  if (const int64_t width = settings.integer("model.width"); width % 2 != 0)
    found.push_back(
        {{"model.width"}, fmt::format("'model.width' ({}) is odd: positions are sines and cosines", width)});
  const std::vector<int64_t> cutoffs = settings.integers("model.cutoffs");
  const bool rises = std::ranges::adjacent_find(cutoffs, std::greater_equal()) == cutoffs.end();
  if (!rises || (!cutoffs.empty() && cutoffs.front() < 1))
    found.push_back({{"model.cutoffs"}, "'model.cutoffs' are tokens above 0, and rise"});
  return found;
}

const train::TaskRegistration kRegistration(
    {.name = "transformer_xl",
     .documentation =
         "Goes on with long text, segment by segment, and remembers those before (Dai et al. 2019).",
     .sections = {{"model", model_options()}, data_options()},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
