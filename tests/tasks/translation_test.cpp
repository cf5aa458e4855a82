#include "tessera/tasks/translation.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/data/examples.h"
#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using Ids = std::vector<int32_t>;

constexpr int64_t kTokens = 8;
constexpr int64_t kVocabulary = 14;
constexpr int32_t kBegin = 1, kEnd = 2, kFirst = 4;

models::TransformerConfig small_network(double dropout = 0) {
  return {.vocabulary = kVocabulary,
          .width = 32,
          .encoder_layers = 1,
          .decoder_layers = 2,
          .heads = 2,
          .inner = 64,
          .positions = 2 * kTokens,
          .dropout = dropout,
          .pre_norm = true};
}

tasks::TranslatorOptions translator(int64_t beams) {
  return {.search = {.beams = beams, .begin = kBegin, .end = kEnd}, .lengths = {4, kTokens}, .texts = 3};
}

// Digits of another language, the last one first.
Ids translated(const Ids& text) {
  Ids result(text.rbegin(), text.rend());
  for (int32_t& token : result) token = kFirst + (token - kFirst + 3) % (kVocabulary - kFirst);
  return result;
}

// By chance, of two to seven tokens.
std::vector<Ids> texts(int64_t count, uint64_t seed = 1) {
  std::vector<Ids> result;
  for (int64_t i = 0; i < count; ++i) {
    const Random random(seed, static_cast<uint64_t>(i));
    Ids& text = result.emplace_back();
    const auto length = static_cast<uint64_t>(2 + 6 * random.uniform(0));
    for (uint64_t place = 1; place <= length; ++place)
      text.push_back(kFirst + static_cast<int32_t>((kVocabulary - kFirst) * random.uniform(place)));
  }
  return result;
}

// As data::ParallelTokens has them.
class Pairs : public data::Examples {
 public:
  Pairs(std::vector<Ids> sources, std::vector<Ids> targets)
      : sources_(std::move(sources)), targets_(std::move(targets)) {}

  int64_t size() const override { return std::ssize(sources_); }
  std::vector<Field> fields() const override {
    return tasks::translation({.network = small_network()}).inputs;
  }
  std::vector<SymbolBindings> buckets() const override { return {{{"tokens", 4}}, {{"tokens", kTokens}}}; }
  int64_t bucket_of(int64_t index) const override {
    return std::max(sources_[static_cast<size_t>(index)].size(),
                    targets_[static_cast<size_t>(index)].size()) < 4
               ? 0
               : 1;
  }
  void read(int64_t index, const data::RandomView&, const data::ExampleRow& row) const override {
    const auto write = [&](size_t field, const Ids& tokens) {
      const auto target = data::elements_of<int32_t>(row, field);
      std::fill(std::ranges::copy(tokens, target.begin()).out, target.end(), 0);
    };
    Ids source = sources_[static_cast<size_t>(index)], target = targets_[static_cast<size_t>(index)];
    source.push_back(kEnd);
    target.push_back(kEnd);
    write(0, source);
    write(1, {static_cast<int32_t>(source.size())});
    write(3, target);
    write(4, {static_cast<int32_t>(target.size())});
    target.pop_back();
    target.insert(target.begin(), kBegin);
    write(2, target);
  }

 private:
  std::vector<Ids> sources_;
  std::vector<Ids> targets_;
};

data::ExampleBatches batches(std::vector<Ids> sources, std::vector<Ids> targets, int64_t batch,
                             bool training) {
  return {std::make_shared<Pairs>(std::move(sources), std::move(targets)),
          {.batch_size = batch, .shuffle = training, .drop_last = training, .seed = 5}};
}

data::ExampleBatches pairs(const std::vector<Ids>& sources, int64_t batch, bool training) {
  std::vector<Ids> targets;
  for (const Ids& source : sources) targets.push_back(translated(source));
  return batches(sources, targets, batch, training);
}

train::Trainer small_trainer(double dropout = 0) {
  return train::Trainer(tasks::translation({.network = small_network(dropout)}),
                        {.optimizer = optim::adam({.learning_rate = 3e-3, .beta2 = 0.98}),
                         .device = Device::cpu(),
                         .sizes = {{"tokens", kTokens}}});
}

train::Serving serving(train::Trainer& trainer) {
  return [&trainer](const nn::Task& task) { return trainer.serve(task); };
}

// The network's logarithms of the probabilities of what comes next after `before`, by whole rows: without
// anything that steps keep.
std::vector<double> log_shares(train::Trainer& trainer, const Ids& source, const Ids& before) {
  const Tensor logits = trainer.predict(batches({source}, {before}, 1, false)).at("logits");
  const int64_t first = std::ssize(before) * kVocabulary;
  double sum = 0;
  for (int64_t token = 0; token < kVocabulary; ++token) sum += std::exp(logits.at(first + token));
  std::vector<double> shares;
  for (int64_t token = 0; token < kVocabulary; ++token)
    shares.push_back(logits.at(first + token) - std::log(sum));
  return shares;
}

std::string words(std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) text += std::to_string(token) + " ";
  return text;
}

train::Numbers measured(train::Trainer& trainer, const data::Source& source, int64_t beams) {
  const auto evaluator =
      tasks::translation_evaluator(small_network(), {.text = words, .translator = translator(beams)})();
  trainer.evaluate(source, *evaluator);
  return evaluator->results();
}

TEST(Translation, LearnsToTranslate) {
  train::Trainer trainer = small_trainer();
  const std::vector<Ids> unseen = texts(50, 2);
  const data::ExampleBatches test = pairs(unseen, 20, false);
  const train::Numbers before = measured(trainer, test, 1);
  EXPECT_NEAR(before.at("loss"), std::log(kVocabulary), 1.5);
  EXPECT_NEAR(before.at("perplexity"), std::exp(before.at("loss")), 1e-9);
  EXPECT_LT(before.at("bleu"), 5);
  trainer.fit(pairs(texts(4000), 40, true), {.epochs = 6});
  const train::Numbers after = measured(trainer, test, 4);
  EXPECT_GT(after.at("accuracy"), 0.95);
  EXPECT_GT(after.at("bleu"), 80);
  // The first so many texts of a batch only.
  const auto some = tasks::translation_evaluator(
      small_network(), {.text = words, .translator = translator(1), .translated = 10})();
  trainer.evaluate(test, *some);
  const Tensor counts = some->state().at("bleu");
  // Those of the short rows come first.
  int64_t expected = 0, left = 10;
  for (const bool is_short : {true, false}) {
    for (const Ids& text : unseen) {
      if ((text.size() < 4) == is_short && left-- > 0) expected += std::ssize(text);
    }
  }
  EXPECT_EQ(counts.at(counts.size() - 1), static_cast<double>(expected));
}

// Whatever passes keep, and whichever rows share them, whole rows say the same.
TEST(Translation, OfOneBeamTakesTheLikeliestTokenOfWholeRows) {
  train::Trainer trainer = small_trainer();
  trainer.fit(pairs(texts(800), 40, true), {.epochs = 2});  // so that it is not sure of anything
  const std::vector<Ids> sources = texts(8, 3);
  const auto found = tasks::translate(serving(trainer), small_network(), translator(1), sources);
  ASSERT_EQ(found.size(), sources.size());
  int64_t compared = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    ASSERT_EQ(found[i].size(), 1U);
    Ids greedy;
    while (std::ssize(greedy) + 1 < kTokens) {
      const std::vector<double> shares = log_shares(trainer, sources[i], greedy);
      const auto token = static_cast<int32_t>(std::ranges::max_element(shares) - shares.begin());
      if (token == kEnd) break;
      greedy.push_back(token);
      ++compared;
    }
    Ids first = found[i].front().tokens;
    if (std::ssize(greedy) + 1 == kTokens) first.resize(std::min(first.size(), greedy.size()));
    EXPECT_EQ(first, greedy) << i;
  }
  EXPECT_GT(compared, 15);
}

TEST(Translation, OfSeveralBeamsScoresTextsAsWholeRowsDo) {
  train::Trainer trainer = small_trainer();
  trainer.fit(pairs(texts(800), 40, true), {.epochs = 2});
  const std::vector<Ids> sources = texts(8, 4);
  const auto found = tasks::translate(serving(trainer), small_network(), translator(4), sources);
  const auto alone = tasks::translate(serving(trainer), small_network(), translator(1), sources);
  int64_t compared = 0, better = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(found[i].size(), 4U);
    for (const train::FoundText& text : found[i]) {
      if (std::ssize(text.tokens) + 1 > kTokens) continue;  // longer than whole rows are here
      double sum = 0;
      Ids before;
      for (const int32_t token : text.tokens) {
        sum += log_shares(trainer, sources[i], before)[static_cast<size_t>(token)];
        before.push_back(token);
      }
      sum += log_shares(trainer, sources[i], before)[kEnd];
      // fp32 through two layers, of some numbers of about one.
      EXPECT_NEAR(text.score, sum / static_cast<double>(text.tokens.size() + 1), 1e-4);
      ++compared;
    }
    better += found[i].front().score > alone[i].front().score + 1e-4 ? 1 : 0;
    EXPECT_GE(found[i].front().score, alone[i].front().score - 0.5) << i;
  }
  EXPECT_GT(compared, 15);
  EXPECT_GT(better, 0) << "the likeliest token is not always the way to the likeliest text";
}

TEST(Translation, OfATextDoesNotDependOnTheOthers) {
  train::Trainer trainer = small_trainer();
  trainer.fit(pairs(texts(400), 40, true), {.epochs = 1});
  const std::vector<Ids> sources = texts(7, 5);
  const auto together = tasks::translate(serving(trainer), small_network(), translator(2), sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto alone = tasks::translate(serving(trainer), small_network(), translator(2), {sources[i]});
    EXPECT_EQ(alone.front().front().tokens, together[i].front().tokens) << i;
  }
  // A text longer than any row is cut.
  Ids longer = sources.front();
  longer.resize(30, kFirst);
  EXPECT_EQ(tasks::translate(serving(trainer), small_network(), translator(1), {longer}).size(), 1U);
}

TEST(Translation, OfPartsIsMeasuredAsOfTheWhole) {
  train::Trainer trainer = small_trainer();
  trainer.fit(pairs(texts(1600), 40, true), {.epochs = 2});
  const auto evaluated = [&](const std::vector<Ids>& sources) {
    auto evaluator =
        tasks::translation_evaluator(small_network(), {.text = words, .translator = translator(2)})();
    trainer.evaluate(pairs(sources, 10, false), *evaluator);
    return evaluator;
  };
  const std::vector<Ids> sources = texts(30, 6);
  const auto whole = evaluated(sources), first = evaluated({sources.begin(), sources.begin() + 13}),
             second = evaluated({sources.begin() + 13, sources.end()});
  first->merge(second->state());
  for (const auto& [name, number] : whole->results())
    EXPECT_NEAR(first->results().at(name), number, 1e-4) << name;
  EXPECT_GT(whole->results().at("bleu"), 1);
  EXPECT_ERROR(first->merge({{"sums", Tensor::from<double>({1}, {1})}}), ErrorCode::invalid_argument,
               "1 sums");
}

TEST(Translation, ResumesToTheSameBits) {
  const data::ExampleBatches source = pairs(texts(100), 10, true);
  expect_same_bits_when_resumed([] { return small_trainer(0.1); }, source, 7);
}

TEST(Translation, RefusesWhatDoesNotFit) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(tasks::translation({.network = {.width = 30, .heads = 4}}), code, "width of 30");
  train::Trainer trainer = small_trainer();
  const auto refused = [&](tasks::TranslatorOptions options) {
    return tasks::translate(serving(trainer), small_network(), options, {{5, 6}});
  };
  EXPECT_ERROR(refused({.lengths = {8, 8}}), code, "lengths of rows");
  EXPECT_ERROR(refused({.lengths = {8}, .texts = 0}), code, "0 texts at once");
  EXPECT_ERROR(refused({.lengths = {8}, .most_growth = 0.5}), code, "0.5 times");
}

}  // namespace
}  // namespace tessera::testing
