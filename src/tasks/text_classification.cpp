#include "tessera/tasks/text_classification.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tessera/ops/functions.h"

#include "tasks/counted_labels.h"
#include "tasks/fine_tuning.h"
#include "tasks/likeliest.h"
#include "tasks/share_evaluator.h"
#include "tasks/text_rows.h"

namespace tessera::tasks {
namespace {

Value* logits_of(nn::Context& context, const models::BertConfig& network, const nn::Values& inputs) {
  Value* pooled = models::bert_pooler(context, network, encoded_text(context, network, inputs));
  return models::bert_label_logits(context, network, pooled);
}

// By row.
struct Answers {
  Value* losses;
  Value* hits;
  Value* counts;
};

Answers answers(nn::Context& context, const models::BertConfig& network, const nn::Values& inputs) {
  const CountedLabels counted = counted_labels(inputs["labels"]);
  Value* logits = logits_of(context, network, inputs);
  return {.losses = ops::cross_entropy(logits, counted.labels),
          .hits = hits_of(logits, counted.labels),
          .counts = counted.counts};
}

class LabelText : public train::PredictionText {
 public:
  LabelText(const std::vector<std::string>& labels, const std::vector<LabeledText>& texts)
      : labels_(labels), texts_(texts) {}

  std::string summary() const override {
    return labeled_ == 0 ? "" : fmt::format("{} of {} right\n", right_, labeled_);
  }

 private:
  std::string example(const train::Example& one) override {
    const auto [best, confidence] = likeliest_class(one.outputs.at("logits"), one.row);
    const LabeledText& text = texts_.at(static_cast<size_t>(one.number));
    std::string told = fmt::format("{} ({:.1f} %)", labels_.at(static_cast<size_t>(best)), 100 * confidence);
    if (text.label >= 0) {
      ++labeled_;
      right_ += best == text.label ? 1 : 0;
      if (best != text.label)
        told += fmt::format(", wrong: it is {}", labels_.at(static_cast<size_t>(text.label)));
    }
    told += "\n  " + text.text + "\n";
    if (text.pair) told += "  " + *text.pair + "\n";
    return told;
  }

  std::vector<std::string> labels_;
  std::vector<LabeledText> texts_;
  int64_t labeled_ = 0;
  int64_t right_ = 0;
};

}  // namespace

nn::Task text_classification(const FineTuningOptions& options) {
  const models::BertConfig network = options.network;
  models::bert_variables(network, models::BertForm::sequence_classification);  // refuses what cannot be
  return {.name = "text_classification",
          .network = "bert",
          .inputs = text_inputs(options, {{"labels", {DataType::int32, {Dimension::symbol("batch")}}}}),
          .metrics = {{.name = "accuracy", .percent = true, .larger_is_better = true}, {.name = "loss"}},
          .samples = "texts",
          .training = [=](nn::Context& context, const nn::Values& inputs) -> nn::Training {
            const Answers given = answers(context, network, inputs);
            return {.objectives = {nn::mean_of("loss", given.losses, given.counts)},
                    .metrics = {nn::mean_of("accuracy", given.hits, given.counts)}};
          },
          .inference = [=](nn::Context& context, const nn::Values& inputs) -> nn::Values {
            return {{"logits", logits_of(context, network, inputs)}};
          },
          .evaluation = [=](nn::Context& context, const nn::Values& inputs) -> nn::Values {
            const Answers given = answers(context, network, inputs);
            return {{"losses", ops::multiply(ops::cast(given.losses, DataType::fp32), given.counts)},
                    {"hits", ops::multiply(given.hits, given.counts)},
                    {"counts", given.counts}};
          }};
}

Feeds text_classification_rows(const std::vector<LabeledText>& texts, const text::Tokenizer& tokenizer,
                               const FineTuningOptions& options) {
  TextRows rows(tokenizer, options.tokens);
  std::vector<int32_t> labels;
  for (const LabeledText& one : texts) {
    const text::EncodeOptions encoding{.maximum_length = options.tokens};
    rows.add(one.pair ? tokenizer.encode_pair(one.text, *one.pair, encoding)
                      : tokenizer.encode(one.text, encoding));
    labels.push_back(one.label);
  }
  Feeds feeds = rows.feeds();
  feeds.emplace("labels", Tensor::from<int32_t>({rows.size()}, labels));
  return feeds;
}

train::EvaluatorMaker text_classification_evaluator() {
  return share_evaluator({{.name = "accuracy", .sum = "hits", .weight = "counts"},
                          {.name = "loss", .sum = "losses", .weight = "counts"}});
}

train::PredictionTextMaker text_classification_text(std::vector<std::string> labels,
                                                    std::vector<LabeledText> texts) {
  return [labels = std::move(labels), texts = std::move(texts)] {
    return std::make_unique<LabelText>(labels, texts);
  };
}

}  // namespace tessera::tasks
