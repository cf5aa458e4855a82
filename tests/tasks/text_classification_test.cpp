#include "tessera/tasks/text_classification.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/data/rows.h"

#include "small_texts.h"
#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using tasks::LabeledText;

const std::vector<std::string> kLabels{"blue", "red"};

// Of texts of several words, whether they say "red".
std::vector<LabeledText> colors(int64_t count) {
  const std::vector<std::string> words{"cat", "dog", "runs", "sits", "cats"};
  std::vector<LabeledText> texts;
  for (int64_t i = 0; i < count; ++i) {
    const auto word = [&](int64_t place) { return words[static_cast<size_t>((i * place + i / 3) % 5)]; };
    const int32_t label = i % 2 == 0 ? 1 : 0;
    const std::string color = label == 1 ? "red" : "blue";
    texts.push_back(
        {.text = i % 3 == 0 ? color + " " + word(1) + " " + word(2) : word(1) + " " + word(2) + " " + color,
         .label = label});
  }
  return texts;
}

Feeds rows_of(const std::vector<LabeledText>& texts, int64_t tokens = 10) {
  return tasks::text_classification_rows(texts, word_tokenizer(), small_fine_tuning(kLabels, tokens));
}

data::Rows test_rows() {
  return {rows_of(colors(30)), {.batch_size = 20, .shuffle = false, .drop_last = false}};
}

TEST(TextClassification, TellsWhatItLearned) {
  train::Trainer trainer(tasks::text_classification(small_fine_tuning(kLabels)), small_fine_tuner());
  const auto measure = [&] {
    const auto evaluator = tasks::text_classification_evaluator()();
    EXPECT_EQ(trainer.evaluate(test_rows(), *evaluator), 30);
    return evaluator->results();
  };
  EXPECT_NEAR(measure().at("loss"), std::log(2), 0.4);
  trainer.fit(data::Rows(rows_of(colors(200)), {.batch_size = 20}), {.epochs = 6});
  EXPECT_EQ(measure().at("accuracy"), 1);
  EXPECT_LT(measure().at("loss"), 0.1);
  const auto text = tasks::text_classification_text(kLabels, colors(30))();
  std::string told;
  trainer.predict(test_rows(), [&](const data::Batch& batch, const Feeds& outputs) {
    told += text->tell(batch, outputs);
  });
  EXPECT_TRUE(told.starts_with("red (")) << told;
  EXPECT_NE(told.find("%)\n  red cat"), std::string::npos) << told;
  EXPECT_EQ(text->summary(), "30 of 30 right\n");
}

TEST(TextClassification, ResumesToTheSameBits) {
  const data::Rows source(rows_of(colors(100)), {.batch_size = 20});
  const auto make = [] {
    tasks::FineTuningOptions options = small_fine_tuning(kLabels);
    options.network.dropout = 0.1;
    return train::Trainer(tasks::text_classification(options), small_fine_tuner());
  };
  expect_same_bits_when_resumed(make, source, 7);
}

// A row without a label has neither a loss nor a place in the accuracy.
TEST(TextClassification, CountsRowsWithALabelAlone) {
  train::Trainer trainer(tasks::text_classification(small_fine_tuning(kLabels)), small_fine_tuner());
  const auto measure = [&](std::vector<LabeledText> texts) {
    const auto evaluator = tasks::text_classification_evaluator()();
    const data::Rows rows(rows_of(texts), {.batch_size = 4, .shuffle = false, .drop_last = false});
    trainer.evaluate(rows, *evaluator);
    return evaluator->results();
  };
  std::vector<LabeledText> texts = colors(6);
  const train::Numbers expected = measure(texts);
  texts.insert(texts.begin() + 2, LabeledText{.text = "red dog"});
  for (const auto& [name, value] : measure(texts)) EXPECT_NEAR(value, expected.at(name), 1e-6) << name;
}

TEST(TextClassification, MakesRowsOfTextsAndOfPairs) {
  const Feeds rows = rows_of({{.text = "red cats"},
                              {.text = "cat", .pair = "dog runs", .label = 1},
                              {.text = "cat cat cat cat cat", .pair = "dog", .label = 0}},
                             8);
  EXPECT_EQ(rows.at("tokens").to_doubles(), (std::vector<double>{2, 7, 4, 5, 3, 0, 0, 0,  //
                                                                 2, 4, 3, 6, 9, 3, 0, 0,  //
                                                                 2, 4, 4, 4, 4, 3, 6, 3}));
  EXPECT_EQ(rows.at("segments").to_doubles(), (std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0,  //
                                                                   0, 0, 0, 1, 1, 1, 0, 0,  //
                                                                   0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(rows.at("lengths").to_doubles(), (std::vector<double>{5, 6, 8}));
  EXPECT_EQ(rows.at("labels").to_doubles(), (std::vector<double>{-1, 1, 0}));
}

TEST(TextClassification, SaysWhatCannotBe) {
  EXPECT_ERROR(tasks::text_classification(small_fine_tuning({"one"})), ErrorCode::invalid_argument,
               "two labels");
  EXPECT_ERROR(tasks::text_classification(small_fine_tuning(kLabels, 17)), ErrorCode::invalid_argument,
               "17 tokens", "16 positions");
}

}  // namespace
}  // namespace tessera::testing
