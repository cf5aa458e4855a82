#include "tessera/tasks/question_answering.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "tasks/counted_labels.h"
#include "tasks/fine_tuning.h"
#include "tasks/text_rows.h"

namespace tessera::tasks {
namespace {

models::BertSpanLogits logits_of(nn::Context& context, const models::BertConfig& network,
                                 const nn::Values& inputs) {
  return models::bert_span_logits(context, network, encoded_text(context, network, inputs));
}

// Of a row: the mean of its two losses.
Value* losses_of(const models::BertSpanLogits& logits, const nn::Values& inputs) {
  Value* both = ops::add(ops::cross_entropy(logits.starts, inputs["starts"]),
                         ops::cross_entropy(logits.ends, inputs["ends"]));
  return ops::multiply(both, 0.5);
}

// The places in the row of the first and the last token of an answer; both 0 where the piece does not hold
// it whole.
std::pair<int32_t, int32_t> marked(const Question& question, const QuestionWindow& window) {
  if (question.answers.empty()) return {0, 0};
  const Answer& answer = question.answers.front();
  const auto begin = static_cast<uint32_t>(answer.begin);
  const auto end = static_cast<uint32_t>(begin + answer.text.size());
  const std::vector<text::Span>& places = window.places;
  if (places.empty() || places.front().begin > begin || places.back().end < end) return {0, 0};
  const auto first = std::ranges::find_if(places, [&](const text::Span& one) { return one.end > begin; });
  const auto last = std::ranges::find_if(places, [&](const text::Span& one) { return one.end >= end; });
  const auto place = [&](auto found) {
    return static_cast<int32_t>(window.first + (found - places.begin()));
  };
  return {place(first), place(last)};
}

// [CLS] question [SEP] piece of the context [SEP].
class RowMaker {
 public:
  RowMaker(const text::Tokenizer& tokenizer, int64_t tokens) : tokenizer_(tokenizer), tokens_(tokens) {
    const auto begin = tokenizer.id_of("[CLS]");
    const auto separator = tokenizer.id_of("[SEP]");
    require(begin && separator, ErrorCode::invalid_argument,
            "question_answering: the tokenizer has no [CLS] and [SEP]");
    begin_ = *begin;
    separator_ = *separator;
  }

  // Calls take(encoding, first, piece) for each piece of the context: its first token, and its tokens.
  template <typename Take>
  void rows_of(const Question& question, int64_t overlap, const Take& take) const {
    std::vector<int32_t> asked;
    tokenizer_.append_tokens(question.question, asked);
    asked.resize(std::min(asked.size(), static_cast<size_t>(tokens_ / 2)));
    const text::Encoding context =
        tokenizer_.encode(question.context, {.special_tokens = false, .offsets = true});
    const int64_t room = tokens_ - kAround - std::ssize(asked);
    const int64_t step = room - std::min(overlap, room - 1);
    int64_t end = 0;
    for (int64_t begin = 0; begin == 0 || end < std::ssize(context.ids); begin += step) {
      end = std::min(begin + room, std::ssize(context.ids));
      text::Encoding row{.ids = {begin_}, .types = {}, .offsets = {}};
      row.ids.insert(row.ids.end(), asked.begin(), asked.end());
      row.ids.push_back(separator_);
      row.types.resize(row.ids.size(), 0);
      const int64_t first = std::ssize(row.ids);
      row.ids.insert(row.ids.end(), context.ids.begin() + begin, context.ids.begin() + end);
      row.ids.push_back(separator_);
      row.types.resize(row.ids.size(), 1);
      take(row, first, {context.offsets.begin() + begin, context.offsets.begin() + end});
    }
  }

 private:
  static constexpr int64_t kAround = 3;

  const text::Tokenizer& tokenizer_;
  int64_t tokens_;
  int32_t begin_;
  int32_t separator_;
};

}  // namespace

nn::Task question_answering(const FineTuningOptions& options) {
  const models::BertConfig network = options.network;
  const TensorType place{DataType::int32, {Dimension::symbol("batch")}};
  return {.name = "question_answering",
          .network = "bert",
          .inputs = text_inputs(options, {{"starts", place}, {"ends", place}}),
          .metrics = {{.name = "f1", .percent = true, .larger_is_better = true},
                      {.name = "exact_match", .percent = true, .larger_is_better = true},
                      {.name = "accuracy", .percent = true, .larger_is_better = true},
                      {.name = "loss"}},
          .samples = "rows",
          .training = [=](nn::Context& context, const nn::Values& inputs) -> nn::Training {
            const models::BertSpanLogits logits = logits_of(context, network, inputs);
            Value* right =
                ops::multiply(hits_of(logits.starts, inputs["starts"]), hits_of(logits.ends, inputs["ends"]));
            return {.objectives = {nn::mean_of("loss", losses_of(logits, inputs))},
                    .metrics = {nn::mean_of("accuracy", right)}};
          },
          .inference = [=](nn::Context& context, const nn::Values& inputs) -> nn::Values {
            const models::BertSpanLogits logits = logits_of(context, network, inputs);
            return {{"starts", logits.starts}, {"ends", logits.ends}};
          },
          .evaluation = [=](nn::Context& context, const nn::Values& inputs) -> nn::Values {
            const models::BertSpanLogits logits = logits_of(context, network, inputs);
            return {{"starts", logits.starts},
                    {"ends", logits.ends},
                    {"losses", ops::cast(losses_of(logits, inputs), DataType::fp32)}};
          }};
}

QuestionRows question_answering_rows(const std::vector<Question>& questions, const text::Tokenizer& tokenizer,
                                     const FineTuningOptions& options, int64_t overlap) {
  const RowMaker maker(tokenizer, options.tokens);
  TextRows rows(tokenizer, options.tokens);
  QuestionRows result;
  std::vector<int32_t> starts;
  std::vector<int32_t> ends;
  for (size_t i = 0; i < questions.size(); ++i) {
    maker.rows_of(
        questions[i], overlap, [&](const text::Encoding& row, int64_t first, std::vector<text::Span> places) {
          rows.add(row);
          const QuestionWindow& window =
              result.windows.emplace_back(QuestionWindow{static_cast<int64_t>(i), first, std::move(places)});
          const auto [start, end] = marked(questions[i], window);
          starts.push_back(start);
          ends.push_back(end);
        });
  }
  result.feeds = rows.feeds();
  result.feeds.emplace("starts", Tensor::from<int32_t>({rows.size()}, starts));
  result.feeds.emplace("ends", Tensor::from<int32_t>({rows.size()}, ends));
  return result;
}

}  // namespace tessera::tasks
