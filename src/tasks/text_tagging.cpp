#include "tessera/tasks/text_tagging.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "tasks/counted_labels.h"
#include "tasks/fine_tuning.h"
#include "tasks/text_rows.h"

namespace tessera::tasks {
namespace {

// [batch, tokens, labels].
Value* logits_of(nn::Context& context, const models::BertConfig& network, const nn::Values& inputs) {
  return models::bert_label_logits(context, network, encoded_text(context, network, inputs));
}

// Of all rows' tokens, one row after another.
struct Answers {
  Value* losses;
  Value* tags;  // int32: what is likeliest
  Value* hits;
  Value* counts;
};

Answers answers(nn::Context& context, const models::BertConfig& network, const nn::Values& inputs) {
  const Dimension flat = element_count(inputs["labels"]->shape());
  const CountedLabels counted = counted_labels(ops::reshape(inputs["labels"], {flat}));
  Value* logits = ops::reshape(logits_of(context, network, inputs), {flat, std::ssize(network.labels)});
  return {.losses = ops::cross_entropy(logits, counted.labels),
          .tags = ops::argmax(logits),
          .hits = hits_of(logits, counted.labels),
          .counts = counted.counts};
}

nn::Values evaluation(nn::Context& context, const models::BertConfig& network, const nn::Values& inputs) {
  const Answers given = answers(context, network, inputs);
  const SymbolicShape& shape = inputs["labels"]->shape();
  Value* losses = ops::multiply(ops::cast(given.losses, DataType::fp32), given.counts);
  return {{"losses", ops::reduce_sum(ops::reshape(losses, shape), {.axes = {1}})},
          {"tags", ops::reshape(given.tags, shape)}};
}

}  // namespace

nn::Task text_tagging(const FineTuningOptions& options) {
  const models::BertConfig network = options.network;
  models::bert_variables(network, models::BertForm::token_classification);  // refuses what cannot be
  const TensorType labels{DataType::int32, {Dimension::symbol("batch"), options.tokens}};
  return {.name = "text_tagging",
          .network = "bert",
          .inputs = text_inputs(options, {{"labels", labels}}),
          .metrics = {{.name = "f1", .percent = true, .larger_is_better = true},
                      {.name = "precision", .percent = true, .larger_is_better = true},
                      {.name = "recall", .percent = true, .larger_is_better = true},
                      {.name = "accuracy", .percent = true, .larger_is_better = true},
                      {.name = "loss"}},
          .samples = "texts",
          .training = [=](nn::Context& context, const nn::Values& inputs) -> nn::Training {
            const Answers given = answers(context, network, inputs);
            return {.objectives = {nn::mean_of("loss", given.losses, given.counts)},
                    .metrics = {nn::mean_of("accuracy", given.hits, given.counts)}};
          },
          .inference = [=](nn::Context& context, const nn::Values& inputs) -> nn::Values {
            return {{"logits", logits_of(context, network, inputs)}};
          },
          .evaluation = [=](nn::Context& context,
                            const nn::Values& inputs) { return evaluation(context, network, inputs); }};
}

Feeds text_tagging_rows(const std::vector<TaggedText>& texts, const text::Tokenizer& tokenizer,
                        const FineTuningOptions& options) {
  TextRows rows(tokenizer, options.tokens);
  std::vector<int32_t> labels;
  for (const TaggedText& one : texts) {
    require(one.tags.empty() || one.tags.size() == one.words.size(), ErrorCode::invalid_argument,
            "{} tags of {} words", one.tags.size(), one.words.size());
    std::string text;
    std::vector<size_t> ends;  // of each word in the text
    for (const std::string& word : one.words) {
      if (!text.empty()) text += ' ';
      text += word;
      ends.push_back(text.size());
    }
    const text::Encoding row = tokenizer.encode(text, {.offsets = true, .maximum_length = options.tokens});
    rows.add(row);
    size_t word = 0;
    bool is_first = true;  // of the word
    for (const text::Span& place : row.offsets) {
      const bool is_added = place.begin == place.end;
      while (!is_added && word < ends.size() && place.begin >= ends[word]) {
        ++word;
        is_first = true;
      }
      // A text of which nothing is known has words all the same, whose tags are asked for.
      const bool counts = !is_added && is_first && word < ends.size();
      labels.push_back(!counts ? -1 : one.tags.empty() ? 0 : one.tags[word]);
      if (counts) is_first = false;
    }
    labels.resize(static_cast<size_t>(rows.size() * options.tokens), -1);
  }
  Feeds feeds = rows.feeds();
  feeds.emplace("labels", Tensor::from<int32_t>({rows.size(), options.tokens}, labels));
  return feeds;
}

}  // namespace tessera::tasks
