#include "tessera/tasks/question_answering.h"

#include <gtest/gtest.h>

#include "tessera/data/rows.h"

#include "small_texts.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using tasks::Answer;
using tasks::AskedQuestions;
using tasks::Question;
using tasks::QuestionRows;

Question question_of(const std::string& question, const std::string& context, const std::string& answer) {
  Question result{.question = question, .context = context};
  if (!answer.empty())
    result.answers.push_back({.text = answer, .begin = static_cast<int64_t>(context.find(answer))});
  return result;
}

// Who does something, and what it does.
std::vector<Question> doings(int64_t count) {
  std::vector<Question> questions;
  for (int64_t i = 0; i < count; ++i) {
    const std::string animal = i % 3 == 0 ? "cats" : i % 3 == 1 ? "dog" : "cat";
    const std::string doing = i % 4 < 2 ? "runs" : "sits";
    const std::string color = i % 5 < 3 ? "red " : "blue red ";
    const bool asks_who = i % 2 == 0;
    questions.push_back(question_of(asks_who ? "who ?" : "what ?", color + animal + " " + doing + " .",
                                    asks_who ? animal : doing));
  }
  return questions;
}

std::shared_ptr<const AskedQuestions> asked(const std::vector<Question>& questions, QuestionRows& rows,
                                            bool may_lack = false) {
  return std::make_shared<const AskedQuestions>(AskedQuestions{
      .questions = questions, .windows = rows.windows, .search = {.longest = 3, .may_lack = may_lack}});
}

QuestionRows rows_of(const std::vector<Question>& questions, int64_t tokens = 12, int64_t overlap = 2) {
  return tasks::question_answering_rows(questions, word_tokenizer(), small_fine_tuning({}, tokens), overlap);
}

TEST(QuestionAnswering, AnswersWhatItLearned) {
  train::Trainer trainer(tasks::question_answering(small_fine_tuning({}, 12)), small_fine_tuner());
  const std::vector<Question> questions = doings(30);
  QuestionRows made = rows_of(questions);
  const data::Rows rows(made.feeds, {.batch_size = 20, .shuffle = false, .drop_last = false});
  const auto measure = [&] {
    const auto evaluator = tasks::question_answering_evaluator(asked(questions, made))();
    EXPECT_EQ(trainer.evaluate(rows, *evaluator), 30);
    return evaluator->results();
  };
  EXPECT_LT(measure().at("exact_match"), 0.5);
  trainer.fit(data::Rows(rows_of(doings(240)).feeds, {.batch_size = 20}), {.epochs = 20});
  const train::Numbers after = measure();
  EXPECT_EQ(after.at("exact_match"), 1);
  EXPECT_EQ(after.at("f1"), 1);
  EXPECT_LT(after.at("loss"), 0.2);
  const auto text = tasks::question_answering_text(asked(questions, made), true)();
  std::string told;
  trainer.predict(
      rows, [&](const data::Batch& batch, const Feeds& outputs) { told += text->tell(batch, outputs); });
  EXPECT_TRUE(told.starts_with("who ?\n  cats\nwhat ?\n  runs\n")) << told;
  EXPECT_EQ(text->summary(), "30 of 30 answers exact\n");
}

TEST(QuestionAnswering, CutsLongContextsIntoPiecesThatOverlap) {
  // Room for four tokens of the context beside "who ?" and three around.
  QuestionRows rows = rows_of({question_of("who ?", "red cats runs dog sits .", "dog sits"),
                               question_of("who ?", "red cats", "cats"), question_of("what ?", "dog", "")},
                              9, 1);
  EXPECT_EQ(rows.feeds.at("tokens").to_doubles(), (std::vector<double>{2, 11, 14, 3, 7, 4, 5,  9,  3,  //
                                                                       2, 11, 14, 3, 9, 6, 10, 13, 3,  //
                                                                       2, 11, 14, 3, 7, 4, 5,  3,  0,  //
                                                                       2, 12, 14, 3, 6, 3, 0,  0,  0}));
  EXPECT_EQ(rows.feeds.at("segments").to_doubles(), (std::vector<double>{0, 0, 0, 0, 1, 1, 1, 1, 1,  //
                                                                         0, 0, 0, 0, 1, 1, 1, 1, 1,  //
                                                                         0, 0, 0, 0, 1, 1, 1, 1, 0,  //
                                                                         0, 0, 0, 0, 1, 1, 0, 0, 0}));
  // The first piece does not hold the answer; "cats" are two tokens.
  EXPECT_EQ(rows.feeds.at("starts").to_doubles(), (std::vector<double>{0, 5, 5, 0}));
  EXPECT_EQ(rows.feeds.at("ends").to_doubles(), (std::vector<double>{0, 6, 6, 0}));
  std::vector<int64_t> questions;
  for (const auto& window : rows.windows) questions.push_back(window.question);
  EXPECT_EQ(questions, (std::vector<int64_t>{0, 0, 1, 2}));
  EXPECT_EQ(rows.windows[1].first, 4);
  EXPECT_EQ(rows.windows[1].places[1], (text::Span{14, 17}));
}

TEST(QuestionAnswering, NeedsTokensAroundTexts) {
  const text::Tokenizer tokenizer = text::parse_word_pieces("[UNK]\n[SEP]\ncat\n", "vocab.txt");
  EXPECT_ERROR(tasks::question_answering_rows({}, tokenizer, small_fine_tuning({}), 1),
               ErrorCode::invalid_argument, "[CLS]");
}

// By SQuAD's evaluate-v1.1.py.
TEST(QuestionAnswering, ScoresAsSquadDoes) {
  const auto expect = [](const std::string& said, const std::vector<std::string>& right, double exact,
                         double f1) {
    std::vector<Answer> answers;
    for (const std::string& one : right) answers.push_back({.text = one});
    const tasks::AnswerScore score = tasks::answer_score(said, answers);
    EXPECT_EQ(score.exact, exact) << said;
    EXPECT_NEAR(score.f1, f1, 1e-12) << said;
  };
  expect("The Tao, of  Programming!", {"tao of programming"}, 1, 1);
  expect("tao of code", {"the Tao of Programming"}, 0, 2.0 / 3);
  expect("cat cat dog", {"cat", "cat dog"}, 0, 0.8);
  expect("\u00c9mile", {"\u00e9mile"}, 1, 1);
  expect("\u2018the\u2019 cat", {"\u2018 \u2019 cat"}, 1, 1);
  expect("another theory", {"other theory"}, 0, 0.5);
  expect("the", {"an"}, 1, 1);
  expect("", {}, 1, 1);
  expect("cat", {}, 0, 0);
}

// Two rows of one question, by hand: the likelier span of both counts, no longer than three tokens.
TEST(QuestionAnswering, TakesTheLikeliestSpanOfAllRows) {
  const std::vector<Question> questions{question_of("who ?", "red cat runs dog sits .", "dog sits")};
  QuestionRows rows = rows_of(questions, 9, 1);
  const auto answer = [&](const std::vector<float>& starts, const std::vector<float>& ends, bool may_lack) {
    const auto text = tasks::question_answering_text(asked(questions, rows, may_lack), false)();
    data::Batch batch;
    batch.samples = 2;
    return text->tell(batch, {{"starts", Tensor::from<float>({2, 9}, starts)},
                              {"ends", Tensor::from<float>({2, 9}, ends)}});
  };
  // Places of the context are 4 to 7 in the first row and 4 to 6 in the second: "dog sits .".
  const std::vector<float> starts{3, 9, 0, 0, 1, 0, 0, 2, 9, 0, 9, 0, 0, -9, 4, 0, 0, 9};
  std::vector<float> ends{3, 9, 0, 0, 0, 0, 0, 1, 9, 0, 9, 0, 0, 9, 0, 3, 0, 9};
  EXPECT_EQ(answer(starts, ends, false), "who ?\n  sits .\n") << "an end before its start does not count";
  ends[14] = 4;
  EXPECT_EQ(answer(starts, ends, false), "who ?\n  sits\n");
  EXPECT_EQ(answer(starts, ends, true), "who ?\n  sits\n") << "a row where it is likelier to stand counts";
}

TEST(QuestionAnswering, SaysThatThereIsNone) {
  const std::vector<Question> questions{question_of("who ?", "red cat", "")};
  QuestionRows rows = rows_of(questions, 9, 1);
  for (const bool may_lack : {false, true}) {
    const auto evaluator = tasks::question_answering_evaluator(asked(questions, rows, may_lack))();
    data::Batch batch;
    batch.samples = 1;
    batch.indices = {0};
    Tensor logits(DataType::fp32, {1, 9});
    logits.set(0, 1);
    evaluator->add(batch,
                   {{"starts", logits}, {"ends", logits}, {"losses", Tensor::from<float>({1}, {0.5F})}});
    EXPECT_EQ(evaluator->results().at("exact_match"), may_lack ? 1 : 0);
    EXPECT_EQ(evaluator->results().at("loss"), 0.5);
  }
}

}  // namespace
}  // namespace tessera::testing
