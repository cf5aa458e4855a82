// Question answering as recipes ask for it: a file of questions with texts that hold their answers.
#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/tasks/question_answering.h"
#include "tessera/text/compared_words.h"
#include "tessera/train/task_registry.h"

#include "tasks/bert_settings.h"
#include "tasks/fine_tuning.h"
#include "tasks/row_data.h"
#include "tasks/text_records.h"

namespace tessera::tasks {
namespace {

using Questions = std::vector<Question>;

constexpr int64_t kTokens = 384;
constexpr int64_t kOverlap = 128;

std::vector<Option> data_options() {
  const auto field = [](const char* key, const char* value, const char* documentation) {
    return Option{.key = key, .value = std::string(value), .documentation = documentation};
  };
  return fine_tuning_data_options(
      kTokens,
      {field("question", "question", "The field or column of the question"),
       field("context", "context", "That of the text that holds its answer"),
       field("answers", "answers",
             "That of the answer, which stands in the context, or \"\" where there is none; a `.jsonl` may "
             "have "
             "`{\"text\": [...], \"answer_start\": [...]}` instead, all that count as right"),
       {.key = "overlap",
        .value = kOverlap,
        .documentation = "Tokens that two pieces of a context share where it does not fit into a row",
        .limits = Limits::between(0, 65536)},
       {.key = "longest_answer",
        .value = AnswerSearch{}.longest,
        .documentation = "Tokens of an answer at most",
        .limits = Limits::between(1, 65536),
        .resuming = Resuming::free},
       {.key = "may_lack",
        .value = false,
        .documentation = "Whether the network may say that a context holds no answer",
        .resuming = Resuming::free}});
}

// Throws Error(invalid_file) where it does not stand there.
Answer answer_at(const Question& question, const std::string& text, int64_t begin, const std::string& where) {
  const bool stands = begin >= 0 && begin <= std::ssize(question.context) &&
                      question.context.compare(static_cast<size_t>(begin), text.size(), text) == 0;
  require(stands, ErrorCode::invalid_file, "{}: the answer '{}' does not stand there in the context", where,
          text);
  return {.text = text, .begin = begin};
}

void add_answer(Question& question, const std::string& text, const std::string& where) {
  if (text.empty()) return;
  const size_t found = question.context.find(text);
  question.answers.push_back(
      answer_at(question, text, found == std::string::npos ? -1 : static_cast<int64_t>(found), where));
}

void add_answers(Question& question, const nlohmann::json& json, const std::string& field,
                 const std::string& where) {
  const auto answers = json.find(field);
  if (answers == json.end() || !answers->is_object())
    return add_answer(question, json_text(json, field, where), where);
  const nlohmann::json texts = answers->value("text", nlohmann::json());
  const nlohmann::json starts = answers->value("answer_start", nlohmann::json());
  require(texts.is_array() && starts.is_array() && texts.size() == starts.size(), ErrorCode::invalid_file,
          "{}: '{}' has no lists 'text' and 'answer_start' of one length", where, field);
  for (size_t i = 0; i < texts.size(); ++i) {
    require(texts[i].is_string() && starts[i].is_number_integer(), ErrorCode::invalid_file,
            "{}: an answer is no text with a place", where);
    const auto begin =
        static_cast<int64_t>(text::end_of_characters(question.context, starts[i].get<int64_t>()));
    question.answers.push_back(answer_at(question, texts[i].get<std::string>(), begin, where));
  }
}

Questions read_objects(const Options& settings, const std::string& file, bool answered) {
  Questions questions;
  visit_json_lines(file, [&](const nlohmann::json& json, const std::string& where) {
    Question& one = questions.emplace_back();
    one.question = json_text(json, settings.text("data.question"), where);
    one.context = json_text(json, settings.text("data.context"), where);
    if (answered) add_answers(one, json, settings.text("data.answers"), where);
  });
  return questions;
}

Questions read_questions(const Options& settings, const std::string& file, bool answered) {
  if (is_json_file(file)) return read_objects(settings, file, answered);
  std::vector<std::string> names{settings.text("data.question"), settings.text("data.context")};
  if (answered) names.push_back(settings.text("data.answers"));
  const std::vector<std::vector<std::string>> fields = read_text_fields(file, names);
  Questions questions;
  for (size_t i = 0; i < fields[0].size(); ++i) {
    Question& one = questions.emplace_back(Question{.question = fields[0][i], .context = fields[1][i]});
    if (answered) add_answer(one, fields[2][i], fmt::format("{}: question {}", file, i + 1));
  }
  return questions;
}

train::Workload create(const Options& settings) {
  const text::Tokenizer tokenizer = tokenizer_of(settings);
  const FineTuningOptions options = fine_tuning_of(settings, tokenizer);
  const auto sets = made_when_asked<ExampleSets<Question>>([settings] {
    return read_examples<Question>(
        settings, [&](const std::string& file) { return read_questions(settings, file, true); });
  });
  const auto rows = [=](const Questions& questions) {
    return question_answering_rows(questions, tokenizer, options, settings.integer("data.overlap"));
  };
  const auto asked = [=](const Questions& questions, QuestionRows& made) {
    return std::make_shared<const AskedQuestions>(
        AskedQuestions{.questions = questions,
                       .windows = std::move(made.windows),
                       .search = {.longest = settings.integer("data.longest_answer"),
                                  .may_lack = settings.boolean("data.may_lack")}});
  };
  const auto predictions = [=](const Questions& questions, bool answered) -> train::PredictionSet {
    QuestionRows made = rows(questions);
    return {rows_in_order(made.feeds, settings), question_answering_text(asked(questions, made), answered)};
  };
  train::Workload workload = fine_tuning_workload(question_answering(options), options.network,
                                                  models::BertForm::question_answering, settings);
  workload.training = [=] { return training_rows(rows(sets().training).feeds, settings); };
  workload.test = [=]() -> train::TestSet {
    QuestionRows made = rows(sets().test);
    return {rows_in_order(made.feeds, settings), question_answering_evaluator(asked(sets().test, made))};
  };
  workload.predictions = [=] { return predictions(sets().test, true); };
  workload.file_predictions = [=](const std::vector<std::string>& files) {
    Questions questions;
    for (const std::string& file : files) {
      for (Question& one : read_questions(settings, file, false)) questions.push_back(std::move(one));
    }
    return predictions(questions, false);
  };
  workload.text_predictions = [=](const std::vector<std::string>& texts) {
    require(texts.size() % 2 == 0, ErrorCode::invalid_argument,
            "a question and its context are two texts, and these are {}", texts.size());
    Questions questions;
    for (size_t i = 0; i < texts.size(); i += 2)
      questions.push_back(Question{.question = texts[i], .context = texts[i + 1]});
    return predictions(questions, false);
  };
  return workload;
}

const train::TaskRegistration kRegistration(
    {.name = "question_answering",
     .documentation = "Where in a text the answer to a question stands, by fine tuning of BERT.",
     .sections = {{"model", bert_options()}, {"data", data_options()}},
     .check = check_fine_tuning,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
