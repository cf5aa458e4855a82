// What evaluators say of parts of the data, together, is what one says of the whole.
#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/tasks/bert_pretraining.h"
#include "tessera/tasks/click_through.h"
#include "tessera/tasks/gan.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/tasks/language_model.h"
#include "tessera/tasks/masked_language_model.h"
#include "tessera/tasks/question_answering.h"
#include "tessera/tasks/text_classification.h"
#include "tessera/tasks/text_tagging.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

constexpr int64_t kRows = 4;
constexpr int64_t kBatches = 6;

Tensor random_numbers(uint64_t seed, const Shape& shape) {
  Tensor tensor(DataType::fp32, shape);
  const Random random(seed);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, random.uniform(static_cast<uint64_t>(i)));
  return tensor;
}

Tensor random_classes(uint64_t seed, int64_t count, DataType type = DataType::int32) {
  Tensor tensor(type, {count});
  const Random random(seed);
  for (int64_t i = 0; i < count; ++i)
    tensor.set(i, static_cast<double>(random.below(static_cast<uint64_t>(i), 2)));
  return tensor;
}

// What every evaluator here reads, of a batch whose last row only fills in the last one.
struct Evaluated {
  data::Batch batch;
  Feeds outputs;
};
Evaluated evaluated(int64_t number) {
  const auto seed = static_cast<uint64_t>(100 * number);
  Evaluated one;
  one.batch.samples = number == kBatches - 1 ? kRows - 1 : kRows;
  for (int64_t row = 0; row < one.batch.samples; ++row) one.batch.indices.push_back(number * kRows + row);
  one.batch.fields = {{"labels", random_classes(seed, kRows)},
                      {"images", random_numbers(seed + 1, {kRows, 2, 2, 1})}};
  one.outputs = {{"loss", random_numbers(seed + 2, {kRows})},
                 {"prediction", random_classes(seed + 3, kRows)},
                 {"confidence", random_numbers(seed + 4, {kRows})},
                 {"probabilities", random_numbers(seed + 5, {kRows})},
                 {"bits", random_numbers(seed + 14, {kRows})},
                 {"hits", random_classes(seed + 6, kRows, DataType::fp32)},
                 {"losses", random_numbers(seed + 21, {kRows})},
                 {"counts", random_classes(seed + 22, kRows, DataType::fp32)},
                 {"places", random_numbers(seed + 7, {kRows})},
                 {"ordered", random_classes(seed + 8, kRows, DataType::fp32)},
                 {"masked_losses", random_numbers(seed + 10, {kRows})},
                 {"masked_hits", random_numbers(seed + 11, {kRows})},
                 {"sentence_losses", random_numbers(seed + 12, {kRows})},
                 {"sentence_hits", random_classes(seed + 13, kRows, DataType::fp32)},
                 {"sentences", random_numbers(seed + 23, {kRows})},
                 {"samples", random_numbers(seed + 9, {kRows, 2, 2, 1})}};
  return one;
}

// The same of a tagger, whose labels are of tokens, and of answers to questions, two rows each.
constexpr int64_t kTokens = 6;

Evaluated tagged(int64_t number) {
  const auto seed = static_cast<uint64_t>(100 * number);
  Evaluated one = evaluated(number);
  one.batch.fields["labels"] = random_classes(seed + 15, kRows * kTokens).reshape({kRows, kTokens});
  one.outputs = {{"losses", random_numbers(seed + 16, {kRows})},
                 {"tags", random_classes(seed + 17, kRows * kTokens).reshape({kRows, kTokens})}};
  return one;
}

Evaluated answered(int64_t number) {
  const auto seed = static_cast<uint64_t>(100 * number);
  Evaluated one = evaluated(number);
  one.outputs = {{"losses", random_numbers(seed + 18, {kRows})},
                 {"starts", random_numbers(seed + 19, {kRows, kTokens})},
                 {"ends", random_numbers(seed + 20, {kRows, kTokens})}};
  return one;
}

// Rows of one question are in batches that different evaluators see.
train::EvaluatorMaker answer_evaluator() {
  constexpr int64_t kQuestions = kRows * kBatches / 2;
  tasks::AskedQuestions asked;
  for (int64_t row = 0; row < kRows * kBatches; ++row) {
    if (row < kQuestions)
      asked.questions.push_back({.question = "which", .context = "a b c d", .answers = {{.text = "b c"}}});
    tasks::QuestionWindow& window = asked.windows.emplace_back();
    window.question = row % kQuestions;
    window.first = 2;
    for (uint32_t word = 0; word < 3; ++word)
      window.places.push_back({2 * word + (row % 2 == 0 ? 0 : 2), 2 * word + (row % 2 == 0 ? 1 : 3)});
  }
  return tasks::question_answering_evaluator(std::make_shared<const tasks::AskedQuestions>(asked));
}

struct EvaluatorCase {
  const char* name;
  train::EvaluatorMaker make;
  Evaluated (*batch)(int64_t number) = evaluated;
};
class Merging : public ::testing::TestWithParam<EvaluatorCase> {};
INSTANTIATE_TEST_SUITE_P(
    Evaluators, Merging,
    ::testing::Values(EvaluatorCase{"ImageClassification", tasks::classification_evaluator()},
                      EvaluatorCase{"ClickThrough", tasks::click_through_evaluator()},
                      EvaluatorCase{"Gan", tasks::gan_evaluator()},
                      EvaluatorCase{"LanguageModel", tasks::language_model_evaluator()},
                      EvaluatorCase{"MaskedLanguageModel", tasks::masked_language_model_evaluator()},
                      EvaluatorCase{"BertPretraining", tasks::bert_pretraining_evaluator()},
                      EvaluatorCase{"TextClassification", tasks::text_classification_evaluator()},
                      EvaluatorCase{"TextTagging", tasks::text_tagging_evaluator({"O", "B-name"}), tagged},
                      EvaluatorCase{"QuestionAnswering", answer_evaluator(), answered}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(Merging, OfPartsGivesTheResultsOfTheWhole) {
  const auto whole = GetParam().make();
  std::vector<std::unique_ptr<train::Evaluator>> parts;
  for (int part = 0; part < 3; ++part) parts.push_back(GetParam().make());
  for (int64_t number = 0; number < kBatches; ++number) {
    const Evaluated one = GetParam().batch(number);
    whole->add(one.batch, one.outputs);
    parts[static_cast<size_t>(number % 2)]->add(one.batch, one.outputs);  // the third sees nothing
  }
  const auto merged = GetParam().make();
  for (const size_t part : {2, 1, 0}) merged->merge(parts[part]->state());
  const train::Numbers results = merged->results();
  const train::Numbers expected = whole->results();
  ASSERT_EQ(results.size(), expected.size());
  // Some dozens of numbers below 1, summed in another order.
  for (const auto& [name, value] : expected) EXPECT_NEAR(results.at(name), value, 1e-12) << name;
  EXPECT_NE(parts[0]->results(), expected);
}

TEST_P(Merging, RefusesWhatIsOfAnotherKind) {
  EXPECT_ERROR(GetParam().make()->merge({{"other", Tensor::scalar(DataType::fp32, 1)}}),
               ErrorCode::invalid_argument, "state of another evaluator");
}

TEST(MergingEvaluators, PutsPredictionsInTheOrderOfTheData) {
  tasks::ClassificationEvaluator first;
  tasks::ClassificationEvaluator second;
  for (int64_t number = 0; number < kBatches; ++number) {
    const Evaluated one = evaluated(number);
    (number % 2 == 0 ? first : second).add(one.batch, one.outputs);
  }
  second.merge(first.state());
  for (size_t i = 0; i < second.predictions().size(); ++i)
    EXPECT_EQ(second.predictions()[i].index, static_cast<int64_t>(i));
}

// A program's own evaluator need not be of any use to several ranks.
TEST(MergingEvaluators, IsRefusedByEvaluatorsWithoutAState) {
  class Counting : public train::Evaluator {
    void add(const data::Batch&, const Feeds&) override {}
    train::Numbers results() const override { return {}; }
  };
  Counting counting;
  train::Evaluator& evaluator = counting;
  EXPECT_ERROR(evaluator.state(), ErrorCode::unsupported, "no state");
  EXPECT_ERROR(evaluator.merge({}), ErrorCode::unsupported, "cannot be merged");
}

}  // namespace
}  // namespace tessera::testing
