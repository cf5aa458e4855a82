// Questions whose answers stand in a text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/feeds.h"
#include "tessera/nn/task.h"
#include "tessera/tasks/fine_tuning.h"
#include "tessera/text/tokenizer.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct Answer {
  std::string text;
  int64_t begin = 0;  // its first byte in the context
};
struct Question {
  std::string question;
  std::string context;
  std::vector<Answer> answers = {};  // all that count as right; empty: the context holds none
};

// transformers' BertForQuestionAnswering.
//   inputs:    tokens, segments int32 [batch, tokens]; lengths int32 [batch], tokens that are no padding;
//              starts, ends int32 [batch], places of the answer's first and last token, 0 where the row holds
//              none
//   objective: loss, the mean cross-entropy of both; metric: accuracy, rows whose likeliest places are both
//              right
//   served:    starts, ends fp32 [batch, tokens], logits
// Throws Error(invalid_argument) where rows have more tokens than the network has positions.
nn::Task question_answering(const FineTuningOptions& options);

// A row: the question, and a piece of the context, which is cut into pieces that overlap where it is long.
struct QuestionWindow {
  int64_t question = 0;            // its place among all
  int64_t first = 0;               // in the row, of the piece's first token
  std::vector<text::Span> places;  // of the piece's tokens in the context
};
struct QuestionRows {
  Feeds feeds;  // the task's inputs
  std::vector<QuestionWindow> windows;
};
// Answers are marked where a piece holds the first of them whole. A question takes half of a row at most.
// `overlap`: tokens of two neighboring pieces. Throws Error(invalid_argument) where the tokenizer has no
// [CLS] and [SEP].
QuestionRows question_answering_rows(const std::vector<Question>& questions, const text::Tokenizer& tokenizer,
                                     const FineTuningOptions& options, int64_t overlap);

// How well what was said agrees with the best of the answers, as SQuAD counts it (Rajpurkar et al. 2016):
// without case, punctuation and articles. Without any answer only "" is right.
struct AnswerScore {
  double exact = 0;  // 1 where all words are the same
  double f1 = 0;     // of the words that both have
};
AnswerScore answer_score(const std::string& said, const std::vector<Answer>& answers);

struct AnswerSearch {
  int64_t longest = 30;   // tokens of an answer
  bool may_lack = false;  // whether "" is said where the first token is likelier than any answer
};
struct AskedQuestions {
  std::vector<Question> questions;
  std::vector<QuestionWindow> windows;  // of the rows, in their order
  AnswerSearch search = {};
};

// "exact_match" and "f1" of questions, the answer of each being the likeliest of all its rows; "loss" of
// rows.
train::EvaluatorMaker question_answering_evaluator(std::shared_ptr<const AskedQuestions> asked);
// Each question with its answer after its last row; and how many answers are exact, where `has_answers`.
train::PredictionTextMaker question_answering_text(std::shared_ptr<const AskedQuestions> asked,
                                                   bool has_answers);

}  // namespace tessera::tasks
