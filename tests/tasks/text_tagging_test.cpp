#include "tessera/tasks/text_tagging.h"

#include <gtest/gtest.h>

#include "tessera/data/rows.h"

#include "small_texts.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using tasks::TaggedSpan;
using tasks::TaggedText;
using Tags = std::vector<std::string>;

const std::vector<std::string> kLabels{"B-animal", "I-animal", "O"};

// Animals, with their color before them.
std::vector<TaggedText> animals(int64_t count) {
  const Tags names{"cat", "dog", "cats"};
  std::vector<TaggedText> texts;
  for (int64_t i = 0; i < count; ++i) {
    TaggedText& text = texts.emplace_back();
    if (i % 3 == 0) text = {{"who", "runs"}, {2, 2}};
    text.words.insert(text.words.end(), {i % 2 == 0 ? "red" : "blue", names[static_cast<size_t>(i % 3)]});
    text.tags.insert(text.tags.end(), {0, 1});
    if (i % 4 == 0) {
      text.words.push_back("sits");
      text.tags.push_back(2);
    }
  }
  return texts;
}

Feeds rows_of(const std::vector<TaggedText>& texts, int64_t tokens = 10) {
  return tasks::text_tagging_rows(texts, word_tokenizer(), small_fine_tuning(kLabels, tokens));
}

data::Rows test_rows() {
  return {rows_of(animals(30)), {.batch_size = 20, .shuffle = false, .drop_last = false}};
}

TEST(TextTagging, FindsWhatItLearned) {
  train::Trainer trainer(tasks::text_tagging(small_fine_tuning(kLabels)), small_fine_tuner());
  const auto measure = [&] {
    const auto evaluator = tasks::text_tagging_evaluator(kLabels)();
    EXPECT_EQ(trainer.evaluate(test_rows(), *evaluator), 30);
    return evaluator->results();
  };
  EXPECT_LT(measure().at("f1"), 0.5);
  trainer.fit(data::Rows(rows_of(animals(200)), {.batch_size = 20}), {.epochs = 8});
  const train::Numbers after = measure();
  for (const char* name : {"accuracy", "precision", "recall", "f1"}) EXPECT_EQ(after.at(name), 1) << name;
  EXPECT_LT(after.at("loss"), 0.1);
  const auto text = tasks::text_tagging_text(kLabels, animals(30))();
  std::string told;
  trainer.predict(test_rows(), [&](const data::Batch& batch, const Feeds& outputs) {
    told += text->tell(batch, outputs);
  });
  EXPECT_TRUE(told.starts_with("text 0: who runs [animal: red cat] sits\ntext 1: [animal: blue dog]\n"))
      << told;
  EXPECT_EQ(text->summary(), "88 of 88 words right\n");
}

TEST(TextTagging, TagsTheFirstTokenOfEachWord) {
  const Feeds rows =
      rows_of({{{"cats", "runs."}, {0, 2}}, {{"red", "cats", "runs", "sits"}, {0, 1, 2, 2}}}, 6);
  EXPECT_EQ(rows.at("tokens").to_doubles(), (std::vector<double>{2, 4, 5, 9, 13, 3,  //
                                                                 2, 7, 4, 5, 9, 3}));
  EXPECT_EQ(rows.at("labels").to_doubles(), (std::vector<double>{-1, 0, -1, 2, -1, -1,  //
                                                                 -1, 0, 1, -1, 2, -1}));
  EXPECT_ERROR(rows_of({{{"cat", "dog"}, {0}}}), ErrorCode::invalid_argument, "1 tags of 2 words");
}

TEST(TextTagging, CountsSpansAsConllDoes) {
  const auto expect = [](const Tags& tags, const std::vector<TaggedSpan>& spans) {
    EXPECT_EQ(tasks::tagged_spans(tags), spans) << tags.front();
  };
  expect({"O", "B-a", "I-a", "O"}, {{1, 3, "a"}});
  expect({"B-a", "B-a", "I-b", "I-b"}, {{0, 1, "a"}, {1, 2, "a"}, {2, 4, "b"}});
  expect({"I-a", "O", "I-a"}, {{0, 1, "a"}, {2, 3, "a"}});
  expect({"noun", "noun", "O"}, {{0, 1, "noun"}, {1, 2, "noun"}});
  // A tag that is called as a type goes on with nothing.
  expect({"a", "I-a"}, {{0, 1, "a"}, {1, 2, "a"}});
}

// One row: said against what is true.
train::Numbers measured(const std::vector<int32_t>& truth, const std::vector<int32_t>& said) {
  const auto evaluator = tasks::text_tagging_evaluator(kLabels)();
  const auto row = [](const std::vector<int32_t>& tags) {
    return Tensor::from<int32_t>({1, std::ssize(tags)}, tags);
  };
  data::Batch batch;
  batch.samples = 1;
  batch.fields = {{"labels", row(truth)}};
  evaluator->add(batch, {{"tags", row(said)}, {"losses", Tensor::from<float>({1}, {3})}});
  return evaluator->results();
}

TEST(TextTagging, IsRightWhereBothEndsAre) {
  // Two of three words are right; of two spans that were found one is, which is all there is.
  train::Numbers numbers = measured({-1, 0, 1, 2, -1}, {0, 0, 1, 0, 0});
  EXPECT_EQ(numbers.at("loss"), 1);
  EXPECT_NEAR(numbers.at("accuracy"), 2.0 / 3, 1e-12);
  EXPECT_EQ(numbers.at("precision"), 0.5);
  EXPECT_EQ(numbers.at("recall"), 1);
  EXPECT_NEAR(numbers.at("f1"), 2.0 / 3, 1e-12);
  numbers = measured({0, 1, 1, 2}, {0, 1, 2, 2});
  EXPECT_EQ(numbers.at("f1"), 0);
  EXPECT_EQ(numbers.at("accuracy"), 0.75);
}

}  // namespace
}  // namespace tessera::testing
