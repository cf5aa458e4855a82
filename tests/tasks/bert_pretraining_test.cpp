#include "tessera/tasks/bert_pretraining.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/data/rows.h"
#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

constexpr int64_t kTokens = 12;
constexpr int64_t kText = 4;  // tokens of each text
constexpr int32_t kBegin = 0;
constexpr int32_t kSeparator = 1;
constexpr int32_t kMask = 2;
constexpr int32_t kPadding = 3;
constexpr int32_t kFirst = 4;  // of the tokens that texts are made of
constexpr int32_t kCount = 12;

// Texts whose tokens count up from anywhere; the second goes on where the first ends, or counts down.
Feeds counting(int64_t rows) {
  Feeds feeds{{"tokens", Tensor(DataType::int32, {rows, kTokens})},
              {"segments", Tensor(DataType::int32, {rows, kTokens})},
              {"lengths", Tensor(DataType::int32, {rows})},
              {"next_sentence", Tensor(DataType::int32, {rows})}};
  for (int64_t row = 0; row < rows; ++row) {
    const bool unrelated = row % 2 == 1;
    std::vector<int64_t> tokens{kBegin};
    for (int64_t i = 0; i < kText; ++i) tokens.push_back(kFirst + (row + i) % kCount);
    tokens.push_back(kSeparator);
    for (int64_t i = kText; i < 2 * kText; ++i)
      tokens.push_back(kFirst + (row + (unrelated ? kCount - i : i)) % kCount);
    tokens.push_back(kSeparator);
    for (size_t i = 0; i < tokens.size(); ++i)
      feeds.at("tokens").set(row * kTokens + static_cast<int64_t>(i), static_cast<double>(tokens[i]));
    for (int64_t i = std::ssize(tokens); i < kTokens; ++i)
      feeds.at("tokens").set(row * kTokens + i, kPadding);
    for (int64_t i = kText + 2; i < std::ssize(tokens); ++i) feeds.at("segments").set(row * kTokens + i, 1);
    feeds.at("lengths").set(row, static_cast<double>(tokens.size()));
    feeds.at("next_sentence").set(row, unrelated ? 1 : 0);
  }
  return feeds;
}

tasks::BertPretrainingOptions small_options(double dropout = 0) {
  return {.network = {.vocabulary = kFirst + kCount,
                      .width = 32,
                      .layers = 1,
                      .heads = 2,
                      .inner = 64,
                      .positions = kTokens,
                      .dropout = dropout,
                      .deviation = 0.1},
          .tokens = kTokens,
          .mask = kMask,
          .kept = {kBegin, kSeparator},
          .masked = 0.2};
}

train::TrainerOptions small_training() {
  return {.optimizer = optim::adamw({.learning_rate = 5e-3}), .device = Device::cpu()};
}

data::Rows test_rows() {
  return {counting(60), {.batch_size = 25, .shuffle = false, .drop_last = false}};
}

TEST(BertPretraining, FillsGapsAndTellsWhatFollows) {
  train::Trainer trainer(tasks::bert_pretraining(small_options()), small_training());
  const auto measure = [&] {
    const auto evaluator = tasks::bert_pretraining_evaluator()();
    EXPECT_EQ(trainer.evaluate(test_rows(), *evaluator), 60);
    return evaluator->results();
  };
  const train::Numbers before = measure();
  EXPECT_LT(before.at("masked_accuracy"), 0.3);
  EXPECT_NEAR(before.at("masked"), std::log(kFirst + kCount), 1);
  trainer.fit(data::Rows(counting(600), {.batch_size = 20}), {.epochs = 20});
  const train::Numbers after = measure();
  EXPECT_GT(after.at("masked_accuracy"), 0.8);
  EXPECT_GT(after.at("next_sentence_accuracy"), 0.95);
  EXPECT_LT(after.at("masked"), 1);
  EXPECT_LT(after.at("next_sentence"), 0.2);
  EXPECT_EQ(measure(), after) << "the same gaps at each evaluation";
}

// What it serves fills gaps at their places and tells what follows.
TEST(BertPretraining, ServesBothAnswers) {
  train::Trainer trainer(tasks::bert_pretraining(small_options()), small_training());
  trainer.fit(data::Rows(counting(600), {.batch_size = 20}), {.epochs = 20});
  Feeds rows = counting(60);
  for (int64_t row = 0; row < 60; ++row) rows.at("tokens").set(row * kTokens + 2, kMask);
  const Feeds served = trainer.predict(data::Rows(rows, {.batch_size = 20, .shuffle = false}));
  const Tensor& logits = served.at("logits");
  ASSERT_EQ(logits.shape(), (Shape{60, kTokens, kFirst + kCount}));
  ASSERT_EQ(served.at("next_sentence").shape(), (Shape{60, 2}));
  int64_t filled = 0;
  int64_t told = 0;
  for (int64_t row = 0; row < 60; ++row) {
    const auto first = logits.data<float>().begin() + (row * kTokens + 2) * (kFirst + kCount);
    const auto best = std::max_element(first, first + kFirst + kCount) - first;
    filled += best == kFirst + (row + 1) % kCount ? 1 : 0;
    const bool unrelated =
        served.at("next_sentence").at(2 * row + 1) > served.at("next_sentence").at(2 * row);
    told += unrelated == (row % 2 == 1) ? 1 : 0;
  }
  EXPECT_GT(filled, 48);
  EXPECT_GT(told, 57);
}

// Padding neither changes what the network says of the tokens before it, nor is it masked.
TEST(BertPretraining, DoesNotLookAtPadding) {
  train::Trainer trainer(tasks::bert_pretraining(small_options()), small_training());
  const auto predicted = [&](int32_t padding) {
    Feeds rows = counting(20);
    for (int64_t row = 0; row < 20; ++row) rows.at("tokens").set(row * kTokens + kTokens - 1, padding);
    return trainer.predict(data::Rows(rows, {.batch_size = 20, .shuffle = false}));
  };
  const Feeds one = predicted(kPadding);
  const Feeds other = predicted(7);
  EXPECT_TRUE(one.at("next_sentence").identical(other.at("next_sentence")));
  const int64_t width = kFirst + kCount;
  for (int64_t i = 0; i < (kTokens - 1) * width; ++i)
    ASSERT_EQ(one.at("logits").at(i), other.at("logits").at(i));
  EXPECT_NE(one.at("logits").at(kTokens * width - 1), other.at("logits").at(kTokens * width - 1));
}

// How many places are filled in each row.
std::vector<double> gaps_of_rows(const tasks::BertPretrainingOptions& options, const Feeds& rows) {
  class Counter : public train::Evaluator {
   public:
    void add(const data::Batch& batch, const Feeds& outputs) override {
      for (int64_t row = 0; row < batch.samples; ++row) counts.push_back(outputs.at("places").at(row));
    }
    train::Numbers results() const override { return {}; }
    std::vector<double> counts;
  };
  train::Trainer trainer(tasks::bert_pretraining(options), small_training());
  Counter counter;
  trainer.evaluate(data::Rows(rows, {.batch_size = 20, .shuffle = false}), counter);
  return counter.counts;
}

TEST(BertPretraining, MasksTheShareOfWhatMayBeMasked) {
  tasks::BertPretrainingOptions options = small_options();
  Feeds rows = counting(20);
  for (const auto& [masked, expected] :
       {std::pair(0.01, 1), {0.2, 2}, {0.5, 4}, {1.0, 8}}) {  // of 8 tokens, and at least one
    options.masked = masked;
    EXPECT_EQ(gaps_of_rows(options, rows), std::vector<double>(20, expected)) << masked;
  }
  rows.at("lengths").set(3, 4);  // begin and three tokens
  rows.at("lengths").set(4, 1);  // begin alone
  const std::vector<double> counts = gaps_of_rows(options, rows);
  EXPECT_EQ(counts[3], 3);
  EXPECT_EQ(counts[4], 0);
  options.kept.push_back(kFirst);
  double kept = 0;
  for (const double token : counting(20).at("tokens").to_doubles()) kept += token == kFirst ? 1 : 0;
  double gaps = 0;
  for (const double count : gaps_of_rows(options, counting(20))) gaps += count;
  EXPECT_EQ(gaps, 20 * 8 - kept);
}

// Two of those rows in one, and a place for a third that there is not.
Feeds packed(const Feeds& rows) {
  const int64_t count = rows.at("lengths").size() / 2;
  Feeds feeds{{"tokens", Tensor(DataType::int32, {count, 2 * kTokens})},
              {"segments", Tensor(DataType::int32, {count, 2 * kTokens})},
              {"lengths", Tensor(DataType::int32, {count, 3})},
              {"next_sentence", Tensor(DataType::int32, {count, 3})}};
  for (int64_t row = 0; row < count; ++row) {
    int64_t end = 0;
    for (const int64_t part : {2 * row, 2 * row + 1}) {
      const auto length = static_cast<int64_t>(rows.at("lengths").at(part));
      for (const char* name : {"tokens", "segments"}) {
        for (int64_t i = 0; i < length; ++i)
          feeds.at(name).set(row * 2 * kTokens + end + i, rows.at(name).at(part * kTokens + i));
      }
      for (const char* name : {"lengths", "next_sentence"})
        feeds.at(name).set(3 * row + part % 2, rows.at(name).at(part));
      end += length;
    }
    for (int64_t i = end; i < 2 * kTokens; ++i) feeds.at("tokens").set(row * 2 * kTokens + i, kPadding);
  }
  return feeds;
}

tasks::BertPretrainingOptions packed_options() {
  tasks::BertPretrainingOptions options = small_options();
  options.tokens = 2 * kTokens;
  options.pairs = 3;
  options.network.positions = 2 * kTokens;
  return options;
}

// With the same weights pairs are told the same of, whichever share a row.
TEST(BertPretraining, SaysTheSameOfPairsThatShareRows) {
  tasks::BertPretrainingOptions single = small_options();
  single.network.positions = 2 * kTokens;
  train::Trainer alone(tasks::bert_pretraining(single), small_training());
  train::Trainer sharing(tasks::bert_pretraining(packed_options()), small_training());
  sharing.load_weights(alone.checkpoint().tensors, "the other");
  const Feeds rows = counting(20);
  const Feeds one = alone.predict(data::Rows(rows, {.batch_size = 20, .shuffle = false}));
  const Feeds other = sharing.predict(data::Rows(packed(rows), {.batch_size = 10, .shuffle = false}));
  ASSERT_EQ(other.at("next_sentence").shape(), (Shape{10, 3, 2}));
  const int64_t width = kFirst + kCount;
  for (int64_t row = 0; row < 20; ++row) {
    const auto length = static_cast<int64_t>(rows.at("lengths").at(row));
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_NEAR(other.at("next_sentence").at((3 * (row / 2) + row % 2) * 2 + i),
                  one.at("next_sentence").at(2 * row + i), 1e-5);
    const int64_t begin = row * kTokens - row % 2 * (kTokens - length);
    for (int64_t i = 0; i < length * width; ++i)
      ASSERT_NEAR(other.at("logits").at(begin * width + i), one.at("logits").at(row * kTokens * width + i),
                  1e-5);
  }
}

TEST(BertPretraining, LearnsFromPairsThatShareRows) {
  train::Trainer trainer(tasks::bert_pretraining(packed_options()), small_training());
  trainer.fit(data::Rows(packed(counting(600)), {.batch_size = 10}), {.epochs = 20});
  const auto evaluator = tasks::bert_pretraining_evaluator()();
  const data::Rows rows(packed(counting(60)), {.batch_size = 25, .shuffle = false, .drop_last = false});
  EXPECT_EQ(trainer.evaluate(rows, *evaluator), 30);
  EXPECT_GT(evaluator->results().at("masked_accuracy"), 0.8);
  EXPECT_GT(evaluator->results().at("next_sentence_accuracy"), 0.95);
}

TEST(BertPretraining, ResumesToTheSameBits) {
  const data::Rows source(counting(100), {.batch_size = 20});
  const auto make = [] {
    train::TrainerOptions options = small_training();
    options.optimizer = optim::lamb({.learning_rate = 1e-2});
    return train::Trainer(tasks::bert_pretraining(small_options(0.1)), options);
  };
  expect_same_bits_when_resumed(make, source, 7);
}

TEST(BertPretraining, DropsWeightsOfAttentionWhileItTrains) {
  const data::Rows source(counting(100), {.batch_size = 20});
  const auto make = [](double rate) {
    tasks::BertPretrainingOptions options = small_options();
    options.network.attention_dropout = rate;
    return train::Trainer(tasks::bert_pretraining(options), small_training());
  };
  expect_same_bits_when_resumed([&] { return make(0.3); }, source, 7);
  // What is measured knows of no dropout.
  const auto measured = [](const train::Trainer& weights, train::Trainer& trainer) {
    trainer.load_weights(weights.checkpoint().tensors, "trained");
    const auto evaluator = tasks::bert_pretraining_evaluator()();
    trainer.evaluate(test_rows(), *evaluator);
    return evaluator->results();
  };
  train::Trainer dropping = make(0.3);
  train::Trainer plain = make(0);
  dropping.fit(source, {.epochs = 1});
  train::Trainer other = make(0.3);
  EXPECT_EQ(measured(dropping, other), measured(dropping, plain));
  train::Trainer kept = make(0);
  kept.fit(source, {.epochs = 1});
  EXPECT_FALSE(different_tensors(dropping.checkpoint().tensors, kept.checkpoint().tensors).empty());
}

TEST(BertPretraining, InSixteenBitsGivesTheLossOfFullPrecision) {
  const auto first_loss = [](Precision precision) {
    train::TrainerOptions options = small_training();
    options.precision = precision;
    train::Trainer trainer(tasks::bert_pretraining(small_options()), options);
    train::Numbers measures;
    train::FitOptions fit{.epochs = 1, .max_steps = 1};
    fit.on_step = [&](const train::StepEvent& event) { measures = event.measures; };
    trainer.fit(data::Rows(counting(40), {.batch_size = 40}), fit);
    return measures;
  };
  const train::Numbers wide = first_loss(Precision::fp32);
  for (const auto& [precision, unit] : {std::pair(Precision::fp16, 0x1p-11), {Precision::bf16, 0x1p-8}}) {
    const train::Numbers narrow = first_loss(precision);
    // About twenty independent roundings on the way to logits of a few units: four deviations.
    EXPECT_NEAR(narrow.at("masked"), wide.at("masked"), 4 * std::sqrt(20) * unit) << to_string(precision);
    EXPECT_NE(narrow.at("masked"), wide.at("masked")) << "nothing is rounded";
  }
}

TEST(BertPretraining, DecodesMaskedPlacesAlone) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  const tasks::BertPretrainingOptions options = small_options();
  EXPECT_EQ(options.places(), 2);
  const nn::Task task = tasks::bert_pretraining(options);
  task.training(context, nn::add_inputs(graph, task, {{"batch", 5}}));
  int64_t products = 0;
  for (const Use& use : graph.find_input("bert.embeddings.word_embeddings.weight")->uses()) {
    if (use.node->operator_name() != "matmul") continue;
    ++products;
    EXPECT_EQ(use.node->output()->shape(), (SymbolicShape{5 * 2, kFirst + kCount}));
  }
  EXPECT_EQ(products, 1);
}

TEST(BertPretraining, SaysWhatCannotBe) {
  const auto expect = [](auto change, const char* word, const char* other) {
    tasks::BertPretrainingOptions options = small_options();
    change(options);
    EXPECT_ERROR(tasks::bert_pretraining(options), ErrorCode::invalid_argument, word, other);
  };
  expect([](auto& options) { options.mask = 16; }, "token 16", "vocabulary of 16");
  expect([](auto& options) { options.masked = 0; }, "masked is 0", "above 0");
  expect([](auto& options) { options.tokens = 13; }, "13 tokens", "12 positions");
  expect([](auto& options) { options.pairs = 0; }, "0 pairs", "rows");
}

}  // namespace
}  // namespace tessera::testing
