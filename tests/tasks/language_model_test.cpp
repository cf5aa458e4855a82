#include "tessera/tasks/language_model.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/data/rows.h"
#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

constexpr int64_t kTokens = 12;
constexpr int64_t kVocabulary = 10;

// Each token is one more than that before the last: two count up in turn, from anywhere.
Feeds counting(int64_t rows) {
  Tensor tokens(DataType::int32, {rows, kTokens});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < kTokens; ++i) {
      const int64_t start = i % 2 == 0 ? row : 7 * row / kVocabulary;
      tokens.set(row * kTokens + i, static_cast<double>((start + i / 2) % kVocabulary));
    }
  }
  return {{"tokens", tokens}};
}

nn::Task small_task(double dropout = 0) {
  return tasks::language_model({.network = {.vocabulary = kVocabulary,
                                            .width = 32,
                                            .layers = 2,
                                            .heads = 2,
                                            .inner = 128,
                                            .positions = kTokens,
                                            .dropout = dropout},
                                .tokens = kTokens});
}

train::TrainerOptions small_training() {
  return {.optimizer = optim::adamw({.learning_rate = 5e-3}), .device = Device::cpu()};
}

// Two tokens of a row are anyone's guess, so that nine of eleven are the most.
TEST(LanguageModel, ForetellsWhatComesNext) {
  const data::Rows test(counting(60), {.batch_size = 25, .shuffle = false, .drop_last = false});
  train::Trainer trainer(small_task(), small_training());
  const auto measure = [&] {
    const auto evaluator = tasks::language_model_evaluator()();
    EXPECT_EQ(trainer.evaluate(test, *evaluator), 60);
    return evaluator->results();
  };
  const train::Numbers before = measure();
  EXPECT_NEAR(before.at("bits_per_token"), std::log2(kVocabulary), 0.3);
  EXPECT_LT(before.at("next_accuracy"), 0.3);
  trainer.fit(data::Rows(counting(600), {.batch_size = 20}), {.epochs = 12});
  EXPECT_GT(measure().at("next_accuracy"), 0.8);
  EXPECT_LT(measure().at("bits_per_token"), 0.75 * before.at("bits_per_token"));
}

// What stands after a place says nothing of it, and what is served is what the evaluator reads.
TEST(LanguageModel, LooksAtWhatStandsBeforeAlone) {
  train::Trainer trainer(small_task(), small_training());
  trainer.fit(data::Rows(counting(200), {.batch_size = 20}), {.epochs = 1});
  const auto logits_of = [&](const Feeds& rows) {
    return trainer.predict(data::Rows(rows, {.batch_size = 10, .shuffle = false})).at("logits");
  };
  const Feeds rows = counting(10);
  Feeds changed = {{"tokens", rows.at("tokens").clone()}};
  constexpr int64_t kKept = 5;
  for (int64_t row = 0; row < 10; ++row) {
    for (int64_t i = kKept; i < kTokens; ++i) changed.at("tokens").set(row * kTokens + i, 3);
  }
  const Tensor logits = logits_of(rows), others = logits_of(changed);
  ASSERT_EQ(logits.shape(), (Shape{10, kTokens, kVocabulary}));
  bool differs = false;
  for (int64_t i = 0; i < logits.size(); ++i) {
    const bool is_kept = i / kVocabulary % kTokens < kKept;
    if (is_kept) {
      // Products of other neighbors in a vector may round otherwise.
      EXPECT_NEAR(logits.at(i), others.at(i), 1e-5);
    } else {
      differs = differs || std::abs(logits.at(i) - others.at(i)) > 1e-2;
    }
  }
  EXPECT_TRUE(differs);
}

TEST(LanguageModel, ShowsTextAndWhatItForetold) {
  const data::Batch batch{
      .fields = {{"tokens", Tensor::from<int32_t>({1, 3}, {'a', 'b', 'c'})}}, .samples = 1, .indices = {4}};
  Tensor logits(DataType::fp32, {1, 3, 256});
  logits.set('b', 1);        // after a
  logits.set(256 + 'x', 1);  // after b
  const auto text =
      tasks::language_model_text([](int64_t token) { return std::string(1, static_cast<char>(token)); })();
  EXPECT_EQ(text->tell(batch, {{"logits", logits}}), "row 4:\n  abc\n  abx\n");
  EXPECT_EQ(text->summary(), "1 of 2 tokens foretold\n");
}

TEST(LanguageModel, ResumesToTheSameBits) {
  const data::Rows source(counting(100), {.batch_size = 20});
  expect_same_bits_when_resumed([] { return train::Trainer(small_task(0.1), small_training()); }, source, 7);
}

TEST(LanguageModel, RefusesRowsWithoutANext) {
  EXPECT_ERROR(tasks::language_model({.tokens = 1}), ErrorCode::invalid_argument, "a row of 1 tokens");
}

}  // namespace
}  // namespace tessera::testing
