// Translations, token by token: the passes of the network, and the search that asks for them.
#include <algorithm>
#include <map>
#include <string>

#include "tessera/base/error.h"
#include "tessera/base/progress.h"
#include "tessera/ops/functions.h"
#include "tessera/tasks/translation.h"

namespace tessera::tasks {
namespace {

struct Extents {
  int64_t texts = 0;     // at once
  int64_t beams = 0;     // rows of each
  int64_t tokens = 0;    // of a text's row
  int64_t capacity = 0;  // tokens of a translation

  int64_t rows() const { return texts * beams; }
};

std::string keys_of(int64_t layer) {
  return "keys." + std::to_string(layer);
}

std::string values_of(int64_t layer) {
  return "values." + std::to_string(layer);
}

nn::Task reading(const models::TransformerConfig& network, const Extents& extents) {
  return {.name = "translation_reading",
          .network = "transformer",
          .inputs = {{"source", {DataType::int32, {extents.texts, extents.tokens}}},
                     {"source_lengths", {DataType::int32, {extents.texts}}}},
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            Value* encoded =
                models::transformer_encoder(context, network, in["source"], in["source_lengths"]);
            const auto memory = models::transformer_memory(context, network, encoded);
            nn::Values served;
            for (size_t layer = 0; layer < memory.size(); ++layer) {
              served.add(keys_of(static_cast<int64_t>(layer)), memory[layer].keys);
              served.add(values_of(static_cast<int64_t>(layer)), memory[layer].values);
            }
            return served;
          }};
}

std::vector<Field> step_inputs(const models::TransformerConfig& network, const Extents& extents) {
  std::vector<Field> inputs{{"newest", {DataType::int32, {extents.rows()}}},
                            {"parents", {DataType::int32, {extents.rows()}}},
                            {"place", {DataType::int32, {1}}},
                            {"source_lengths", {DataType::int32, {extents.texts}}}};
  const TensorType of_memory{DataType::fp32,
                             {extents.texts, network.heads, extents.tokens, network.width / network.heads}};
  for (int64_t layer = 0; layer < network.decoder_layers; ++layer) {
    inputs.push_back({keys_of(layer), of_memory});
    inputs.push_back({values_of(layer), of_memory});
  }
  return inputs;
}

// The likeliest tokens of each row, and the one that ends a text.
nn::Task stepping(const models::TransformerConfig& network, const Extents& extents, int32_t end) {
  const int64_t rows = extents.rows(), vocabulary = network.vocabulary;
  return {
      .name = "translation_step",
      .network = "transformer",
      .inputs = step_inputs(network, extents),
      .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
        models::TransformerStep step{.tokens = in["newest"],
                                     .parents = in["parents"],
                                     .place = in["place"],
                                     .capacity = extents.capacity,
                                     .memory = {},
                                     .lengths = in["source_lengths"]};
        for (int64_t layer = 0; layer < network.decoder_layers; ++layer)
          step.memory.push_back({in[keys_of(layer)], in[values_of(layer)]});
        Value* logits =
            models::transformer_logits(context, network, models::transformer_step(context, network, step));
        Value* log_shares =
            ops::log_softmax(ops::cast(ops::reshape(logits, {rows, vocabulary}), DataType::fp32));
        const ops::TopK best = ops::top_k(log_shares, std::min(2 * extents.beams, vocabulary));
        Value* ends = ops::slice(log_shares, {0, end}, {rows, end + 1});
        return {{"tokens", best.indices}, {"log_shares", best.values}, {"ends", ops::reshape(ends, {rows})}};
      }};
}

ExecutableFamily compiled(const train::Serving& serve, const nn::Task& task) {
  const LongWork compiling;
  ExecutableFamily family = serve(task);
  family.prepare({{}});
  return family;
}

// Of texts whose rows have one length, so many at once.
class RowTranslator {
 public:
  RowTranslator(const train::Serving& serve, const models::TransformerConfig& network,
                const TranslatorOptions& options, const Extents& extents)
      : search_(options.search),
        extents_(extents),
        reading_(compiled(serve, reading(network, extents))),
        stepping_(compiled(serve, stepping(network, extents, options.search.end))) {
    search_.longest = extents.capacity;
  }

  // Of as many texts at most, that fit.
  std::vector<std::vector<train::FoundText>> translate(std::span<const std::vector<int32_t>> texts) {
    Tensor source = Tensor::full(DataType::int32, {extents_.texts, extents_.tokens}, 0);
    Tensor lengths = Tensor::full(DataType::int32, {extents_.texts}, 1);
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto row = source.data<int32_t>().subspan(i * static_cast<size_t>(extents_.tokens));
      *std::ranges::copy(texts[i], row.begin()).out = search_.end;
      lengths.set(static_cast<int64_t>(i), static_cast<double>(texts[i].size() + 1));
    }
    // What the steps read of the texts stays on the device until there are others. It is no state: a frozen
    // graph takes states that others update for settled, and packs them once.
    Feeds memory = reading_.at({})->run({{"source", source}, {"source_lengths", lengths}});
    memory.emplace("source_lengths", lengths);
    stepping_.at({})->stage(memory);
    return train::beam_search(std::ssize(texts), search_, [&](auto newest, auto parents, int64_t place) {
      return step(newest, parents, place);
    });
  }

 private:
  // Rows after those that are searched are there for the shape.
  train::NextTokens step(std::span<const int32_t> newest, std::span<const int32_t> parents, int64_t place) {
    const auto filled = [&](std::span<const int32_t> given) {
      Tensor tensor = Tensor::full(DataType::int32, {extents_.rows()}, 0);
      std::ranges::copy(given, tensor.data<int32_t>().begin());
      return tensor;
    };
    Feeds said =
        stepping_.at({})->run({{"newest", filled(newest)},
                               {"parents", filled(parents)},
                               {"place", Tensor::from<int32_t>({1}, {static_cast<int32_t>(place)})}});
    return {
        .tokens = said.at("tokens"), .log_shares = said.at("log_shares"), .end_log_share = said.at("ends")};
  }

  train::BeamOptions search_;
  Extents extents_;
  ExecutableFamily reading_;
  ExecutableFamily stepping_;
};

void check(const TranslatorOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(!options.lengths.empty() && options.lengths.front() > 1 &&
              std::ranges::is_sorted(options.lengths, std::less_equal()),
          code, "lengths of rows are two tokens or more, and rise");
  require(options.texts > 0, code, "{} texts at once", options.texts);
  require(options.most_growth >= 1, code, "translations of {} times the tokens of a text",
          options.most_growth);
}

}  // namespace

std::vector<std::vector<train::FoundText>> translate(const train::Serving& serve,
                                                     const models::TransformerConfig& network,
                                                     const TranslatorOptions& options,
                                                     const std::vector<std::vector<int32_t>>& texts) {
  check(options);
  std::map<int64_t, std::vector<size_t>> by_length;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto bucket = std::ranges::lower_bound(options.lengths, std::ssize(texts[i]) + 1);
    by_length[bucket == options.lengths.end() ? options.lengths.back() : *bucket].push_back(i);
  }
  std::vector<std::vector<train::FoundText>> found(texts.size());
  for (const auto& [tokens, members] : by_length) {
    const Extents extents{
        .texts = std::min(options.texts, std::ssize(members)),
        .beams = options.search.beams,
        .tokens = tokens,
        .capacity = std::min(network.positions,
                             static_cast<int64_t>(options.most_growth * static_cast<double>(tokens)))};
    RowTranslator translator(serve, network, options, extents);
    for (size_t first = 0; first < members.size(); first += static_cast<size_t>(extents.texts)) {
      const size_t count = std::min(static_cast<size_t>(extents.texts), members.size() - first);
      std::vector<std::vector<int32_t>> given;
      for (size_t i = first; i < first + count; ++i) {
        given.push_back(texts[members[i]]);
        given.back().resize(std::min(given.back().size(), static_cast<size_t>(tokens - 1)));
      }
      std::vector<std::vector<train::FoundText>> said = translator.translate(given);
      for (size_t i = 0; i < count; ++i) found[members[first + i]] = std::move(said[i]);
      note_progress();
    }
  }
  return found;
}

}  // namespace tessera::tasks
