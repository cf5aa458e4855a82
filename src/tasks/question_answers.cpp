// What a network answers, for its evaluation and for a terminal.
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tessera/tasks/question_answering.h"

#include "tasks/found_answers.h"

namespace tessera::tasks {
namespace {

class AnswerEvaluator : public train::Evaluator {
 public:
  explicit AnswerEvaluator(std::shared_ptr<const AskedQuestions> asked)
      : asked_(std::move(asked)), found_(asked_) {}

  void add(const data::Batch& batch, const Feeds& outputs) override {
    for (int64_t row = 0; row < batch.samples; ++row) {
      found_.add(batch.indices.at(static_cast<size_t>(row)), outputs.at("starts"), outputs.at("ends"), row);
      losses_ += outputs.at("losses").at(row);
      ++rows_;
    }
  }
  train::Numbers results() const override {
    AnswerScore sums;
    double questions = 0;
    for (int64_t i = 0; i < std::ssize(asked_->questions); ++i) {
      if (!found_.has(i)) continue;
      const AnswerScore one =
          answer_score(found_.answer(i), asked_->questions[static_cast<size_t>(i)].answers);
      sums.exact += one.exact;
      sums.f1 += one.f1;
      ++questions;
    }
    const auto mean = [](double sum, double count) { return count == 0 ? 0 : sum / count; };
    return {{"exact_match", mean(sums.exact, questions)},
            {"f1", mean(sums.f1, questions)},
            {"loss", mean(losses_, rows_)}};
  }
  Feeds state() const override {
    return {{"answers", found_.state()}, {"losses", Tensor::from<double>({2}, {losses_, rows_})}};
  }
  void merge(const Feeds& state) override {
    const Tensor& losses = train::state_tensor(state, "losses", DataType::fp64);
    found_.merge(train::state_tensor(state, "answers", DataType::fp64));
    losses_ += losses.at(0);
    rows_ += losses.at(1);
  }

 private:
  std::shared_ptr<const AskedQuestions> asked_;
  FoundAnswers found_;
  double losses_ = 0;
  double rows_ = 0;
};

class AnswerText : public train::PredictionText {
 public:
  AnswerText(std::shared_ptr<const AskedQuestions> asked, bool has_answers)
      : asked_(std::move(asked)), found_(asked_), has_answers_(has_answers) {}

  std::string summary() const override {
    return has_answers_ ? fmt::format("{} of {} answers exact\n", exact_, answered_) : "";
  }

 private:
  std::string example(const train::Example& one) override {
    found_.add(one.number, one.outputs.at("starts"), one.outputs.at("ends"), one.row);
    const std::vector<QuestionWindow>& windows = asked_->windows;
    const auto next = static_cast<size_t>(one.number) + 1;
    const int64_t number = windows[next - 1].question;
    if (next < windows.size() && windows[next].question == number) return "";
    const Question& question = asked_->questions[static_cast<size_t>(number)];
    const std::string answer = found_.answer(number);
    ++answered_;
    std::string told = fmt::format("{}\n  {}\n", question.question, answer.empty() ? "(no answer)" : answer);
    if (!has_answers_) return told;
    const bool is_exact = answer_score(answer, question.answers).exact == 1;
    exact_ += is_exact ? 1 : 0;
    if (!is_exact)
      told += fmt::format("  expected: {}\n",
                          question.answers.empty() ? "(no answer)" : question.answers.front().text);
    return told;
  }

  std::shared_ptr<const AskedQuestions> asked_;
  FoundAnswers found_;
  bool has_answers_;
  int64_t answered_ = 0;
  int64_t exact_ = 0;
};

}  // namespace

train::EvaluatorMaker question_answering_evaluator(std::shared_ptr<const AskedQuestions> asked) {
  return [asked = std::move(asked)] { return std::make_unique<AnswerEvaluator>(asked); };
}

train::PredictionTextMaker question_answering_text(std::shared_ptr<const AskedQuestions> asked,
                                                   bool has_answers) {
  return [asked = std::move(asked), has_answers] { return std::make_unique<AnswerText>(asked, has_answers); };
}

}  // namespace tessera::tasks
