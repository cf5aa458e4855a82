#include "tessera/tasks/language_model.h"

#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/expression.h"
#include "tessera/train/task_registry.h"

#include "tasks/row_data.h"
#include "tasks/share_evaluator.h"
#include "tasks/text_data.h"

namespace tessera::tasks {
namespace {

using ModelOptions = LanguageModelOptions;

constexpr double kDeviation = 0.02;  // of weights at the start

Value* words(const ModelOptions& options, nn::Context& context) {
  return context.parameter("words.weight", {options.vocabulary, options.width}, nn::normal(kDeviation));
}

// [batch, tokens, width]
Value* decoder(const ModelOptions& options, nn::Context& context, Value* tokens) {
  Value* positions =
      context.parameter("positions.weight", {options.tokens, options.width}, nn::normal(kDeviation));
  ops::Expression x = ops::gather(words(options, context), tokens);
  x = nn::dropout(context, x + positions, options.dropout);
  const nn::LinearOptions inwards{.weight = nn::normal(kDeviation)};
  // What 2 * layers parts add up to begins as large as one part.
  const nn::LinearOptions outwards{
      .weight = nn::normal(kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers)))};
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const auto scope = context.scope("layer" + std::to_string(layer));
    Value* attended = nn::self_attention(context, "attention", nn::layer_norm(context, "norm0", x),
                                         options.heads, {.causal = true, .weight = nn::normal(kDeviation)});
    x = x + nn::dropout(context, attended, options.dropout);
    Value* inner =
        nn::linear(context, "fc0", nn::layer_norm(context, "norm1", x), 4 * options.width, inwards);
    Value* outer = nn::linear(context, "fc1", ops::gelu(inner, true), options.width, outwards);
    x = x + nn::dropout(context, outer, options.dropout);
  }
  return nn::layer_norm(context, "norm", x);
}

// [..., vocabulary], by the embeddings of the words.
Value* logits_of(const ModelOptions& options, nn::Context& context, Value* x) {
  return ops::matmul(x, words(options, context), {.transpose_b = true});
}

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

Foretold foretell(const ModelOptions& options, nn::Context& context, Value* tokens) {
  const std::vector<int64_t> without_last{options.tokens - 1, 1}, without_first{1, options.tokens - 1};
  Value* x = ops::split(decoder(options, context, tokens), without_last, 1)[0];
  Value* labels = ops::split(tokens, without_first, 1)[1];
  const SymbolicShape shape = labels->shape();
  const Dimension places = element_count(shape);
  return {.logits = ops::reshape(logits_of(options, context, x), {places, options.vocabulary}),
          .labels = ops::reshape(labels, {places}),
          .shape = shape};
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

const ModelOptions kDefaults;

train::Workload create(const Options& settings) {
  const auto text = std::make_shared<const TextData>(settings);
  const ModelOptions options{.tokens = settings.integer("data.tokens"),
                             .vocabulary = text->vocabulary(),
                             .width = settings.integer("model.width"),
                             .heads = settings.integer("model.heads"),
                             .layers = settings.integer("model.layers"),
                             .dropout = settings.real("model.dropout")};
  train::Workload workload = text->workload(language_model(options), language_model_evaluator());
  workload.predictions = [text, settings]() -> train::PredictionSet {
    return {rows_in_order({{"tokens", text->tokens_to_look_at()}}, settings),
            language_model_text(text->shown())};
  };
  workload.continuation = [text] { return text->continuation(); };
  return workload;
}

const train::TaskRegistration kRegistration(
    {.name = "language_model",
     .documentation = "Goes on with text, token by token (Radford et al. 2019).",
     .sections = {{"model", transformer_options(kDefaults.width, kDefaults.heads, kDefaults.layers,
                                                kDefaults.dropout)},
                  {"data", text_options(kDefaults.tokens)}},
     .check = check_text,
     .create = create});

}  // namespace

nn::Task language_model(const LanguageModelOptions& options) {
  require(options.tokens > 1, ErrorCode::invalid_argument,
          "language_model: a row of {} tokens has none to foretell", options.tokens);
  return {.name = "language_model",
          .network = "decoder",
          .inputs = {{"tokens", {DataType::int32, {Dimension::symbol("batch"), options.tokens}}}},
          .metrics = {{.name = "loss"},
                      {.name = "bits_per_token"},
                      {.name = "next_accuracy", .percent = true, .larger_is_better = true}},
          .samples = "rows",
          .training = [=](nn::Context& context, const nn::Values& in) -> nn::Training {
            return {.objectives = {nn::mean_of("loss", foretell(options, context, in["tokens"]).losses())}};
          },
          .inference = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            return {{"logits", logits_of(options, context, decoder(options, context, in["tokens"]))}};
          },
          .evaluation = [=](nn::Context& context, const nn::Values& in) -> nn::Values {
            const Foretold foretold = foretell(options, context, in["tokens"]);
            Value* nats = ops::reduce_mean(foretold.losses(), {.axes = {1}});
            return {{"bits", ops::divide(nats, std::numbers::ln2)},
                    {"hits", ops::reduce_mean(foretold.hits(), {.axes = {1}})}};
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
