#include "tessera/tasks/language_model.h"

#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "tasks/share_evaluator.h"
#include "tasks/text_data.h"

namespace tessera::tasks {
namespace {

// Of every token but a row's first.
struct Foretold {
  Value* logits;        // [batch * (tokens - 1), vocabulary]
  Value* labels;        // int32 [batch * (tokens - 1)], what came
  SymbolicShape shape;  // [batch, tokens - 1]

  // In nats, fp32 by row and place.
  Value* losses() const { return ops::reshape(ops::cross_entropy(logits, labels), shape); }
  // 1 where the likeliest token came.
  Value* hits() const {
    Value* likeliest = ops::cast(ops::argmax(logits, 1), DataType::int32);
    return ops::reshape(ops::cast(ops::equal(likeliest, labels), DataType::fp32), shape);
  }
};

Foretold foretell(const LanguageModelOptions& options, nn::Context& context, Value* tokens) {
  const std::vector<int64_t> without_last{options.tokens - 1, 1}, without_first{1, options.tokens - 1};
  Value* x = ops::split(models::decoder(context, options.network, tokens), without_last, 1)[0];
  Value* labels = ops::split(tokens, without_first, 1)[1];
  const SymbolicShape shape = labels->shape();
  const Dimension places = element_count(shape);
  return {.logits = ops::reshape(models::decoder_logits(context, options.network, x),
                                 {places, options.network.vocabulary}),
          .labels = ops::reshape(labels, {places}),
          .shape = shape};
}

std::string network_name(const models::DecoderConfig& network) {
  return network.form == models::DecoderForm::gpt2 ? "gpt2" : "llama";
}

class ForetoldText : public train::PredictionText {
 public:
  explicit ForetoldText(std::function<std::string(int64_t token)> shown) : shown_(std::move(shown)) {}

  std::string summary() const override { return fmt::format("{} of {} tokens foretold\n", hits_, tokens_); }

 private:
  std::string example(const train::Example& one) override {
    const Tensor& tokens = one.batch.fields.at("tokens");
    const Tensor& logits = one.outputs.at("logits");
    const int64_t length = tokens.shape()[1], first = one.row * length;
    std::string text = shown_(static_cast<int64_t>(tokens.at(first)));
    std::string foretold = text;
    for (int64_t place = first + 1; place < first + length; ++place) {
      const auto token = static_cast<int64_t>(tokens.at(place));
      const int64_t said = likeliest_token(logits, place - 1);
      text += shown_(token);
      foretold += shown_(said);
      ++tokens_;
      hits_ += said == token ? 1 : 0;
    }
    return fmt::format("row {}:\n  {}\n  {}\n", one.number, text, foretold);
  }

  std::function<std::string(int64_t token)> shown_;
  int64_t tokens_ = 0;
  int64_t hits_ = 0;
};

}  // namespace

nn::Task language_model(const LanguageModelOptions& options) {
  require(options.tokens > 1, ErrorCode::invalid_argument,
          "language_model: a row of {} tokens has none to foretell", options.tokens);
  return {.name = "language_model",
          .network = network_name(options.network),
          .inputs = {{"tokens", {DataType::int32, {Dimension::symbol("batch"), options.tokens}}}},
          .metrics = {{.name = "loss"},
                      {.name = "bits_per_token"},
                      {.name = "next_accuracy", .percent = true, .larger_is_better = true}},
          .samples = "rows",
          .training = [=](nn::Context& context, const nn::Values& in) -> nn::Training {
            return {.objectives = {nn::mean_of("loss", foretell(options, context, in["tokens"]).losses())}};
          },
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            Value* decoded = models::decoder(context, options.network, in["tokens"]);
            return {{"logits", models::decoder_logits(context, options.network, decoded)}};
          },
          .evaluation = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            const Foretold foretold = foretell(options, context, in["tokens"]);
            Value* nats = ops::reduce_mean(foretold.losses(), {.axes = {1}});
            return {{"bits", ops::divide(nats, std::numbers::ln2)},
                    {"hits", ops::reduce_mean(foretold.hits(), {.axes = {1}})}};
          }};
}

nn::Task language_model_passes(const models::DecoderConfig& network, int64_t capacity) {
  const Dimension tokens = Dimension::symbol("tokens");
  return {.name = "language_model_passes",
          .network = network_name(network),
          .inputs = {{"tokens", {DataType::int32, {1, tokens}}},
                     {"places", {DataType::int32, {tokens}}},
                     {"last", {DataType::int32, {1}}}},
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            const nn::AttentionCache cache(in["places"], capacity);
            Value* decoded = models::decoder(context, network, in["tokens"], &cache);
            Value* last = ops::gather(ops::reshape(decoded, {-1, network.width}), in["last"]);
            return {{"logits", models::decoder_logits(context, network, last)}};
          }};
}

train::EvaluatorMaker language_model_evaluator() {
  return share_evaluator({{.name = "bits_per_token", .sum = "bits", .weight = ""},
                          {.name = "next_accuracy", .sum = "hits", .weight = ""}});
}

train::PredictionTextMaker language_model_text(std::function<std::string(int64_t token)> shown) {
  return [shown = std::move(shown)] { return std::make_unique<ForetoldText>(shown); };
}

}  // namespace tessera::tasks
