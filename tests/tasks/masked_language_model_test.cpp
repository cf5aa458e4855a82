#include "tessera/tasks/masked_language_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/data/rows.h"
#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

constexpr int64_t kTokens = 8;
constexpr int64_t kVocabulary = 12;

// Tokens that count up in the first half and down in the second, from anywhere.
Feeds counting(int64_t rows) {
  Tensor tokens(DataType::int32, {rows, kTokens});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < kTokens; ++i) {
      const int64_t place = i < kTokens / 2 ? row + i : row + kTokens - i;
      tokens.set(row * kTokens + i, static_cast<double>(place % kVocabulary));
    }
  }
  return {{"tokens", tokens}};
}

nn::Task small_task(double dropout = 0) {
  return tasks::masked_language_model({.tokens = kTokens,
                                       .vocabulary = kVocabulary,
                                       .width = 32,
                                       .heads = 2,
                                       .layers = 1,
                                       .dropout = dropout,
                                       .masked = 0.2});
}

train::TrainerOptions small_training() {
  return {.optimizer = optim::adamw({.learning_rate = 5e-3}), .device = Device::cpu()};
}

// Where the accuracy has stopped to rise, so that it does not depend on how a processor rounds.
constexpr int64_t kEpochs = 60;

TEST(MaskedLanguageModel, FillsGapsAndTellsTheOrder) {
  const data::Rows test(counting(60), {.batch_size = 25, .shuffle = false, .drop_last = false});
  train::Trainer trainer(small_task(), small_training());
  const auto measure = [&] {
    const auto evaluator = tasks::masked_language_model_evaluator()();
    EXPECT_EQ(trainer.evaluate(test, *evaluator), 60);
    return evaluator->results();
  };
  EXPECT_LT(measure().at("masked_accuracy"), 0.3);
  trainer.fit(data::Rows(counting(600), {.batch_size = 20}), {.epochs = kEpochs});
  const train::Numbers after = measure();
  EXPECT_GT(after.at("masked_accuracy"), 0.7);
  EXPECT_GT(after.at("order_accuracy"), 0.9);
  EXPECT_EQ(measure(), after) << "the same gaps at each evaluation";
}

// What it serves fills gaps as well as what an evaluator reads of it.
TEST(MaskedLanguageModel, ServesWhatGapsAreFilledWith) {
  train::Trainer trainer(small_task(), small_training());
  trainer.fit(data::Rows(counting(600), {.batch_size = 20}), {.epochs = kEpochs});
  const tasks::MaskedLanguageModelOptions options{
      .tokens = kTokens, .vocabulary = kVocabulary, .masked = 0.2};
  const Feeds rows = tasks::with_gaps(counting(60).at("tokens"), options);
  const data::Rows source(rows, {.batch_size = 25, .shuffle = false, .drop_last = false});
  const Tensor logits = trainer.predict(source).at("logits");
  ASSERT_EQ(logits.shape(), (Shape{60, kTokens, kVocabulary + 1}));
  int64_t gaps = 0;
  int64_t hits = 0;
  for (int64_t place = 0; place < 60 * kTokens; ++place) {
    if (rows.at("tokens").at(place) != kVocabulary) {
      EXPECT_EQ(rows.at("tokens").at(place), rows.at("labels").at(place));
      continue;
    }
    ++gaps;
    const auto first = logits.data<float>().begin() + place * (kVocabulary + 1);
    const auto best = std::max_element(first, first + kVocabulary + 1);
    hits += best - first == static_cast<int64_t>(rows.at("labels").at(place)) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(gaps), 0.2 * 60 * kTokens, 40);  // four deviations
  EXPECT_GT(static_cast<double>(hits), 0.7 * static_cast<double>(gaps));

  const auto text = tasks::masked_language_model_text(options)();
  trainer.predict(source,
                  [&](const data::Batch& batch, const Feeds& outputs) { text->tell(batch, outputs); });
  EXPECT_EQ(text->summary(), fmt::format("{} of {} gaps filled with what was there\n", hits, gaps));
}

TEST(MaskedLanguageModel, ShowsTextWithItsGapsAndFilled) {
  const std::vector<int32_t> labels{'a', '\n', 200, 'd'};
  const data::Batch batch{.fields = {{"tokens", Tensor::from<int32_t>({1, 4}, {'a', '\n', 200, 256})},
                                     {"labels", Tensor::from<int32_t>({1, 4}, labels)}},
                          .samples = 1,
                          .indices = {5}};
  Tensor logits(DataType::fp32, {1, 4, 257});
  logits.set(3 * 257 + 'x', 1);
  const auto text = tasks::masked_language_model_text({.tokens = 4})();
  EXPECT_EQ(text->tell(batch, {{"logits", logits}}), "row 5:\n  a ._\n  a .x\n");
  EXPECT_EQ(text->summary(), "0 of 1 gaps filled with what was there\n");
}

TEST(MaskedLanguageModel, ResumesToTheSameBits) {
  const data::Rows source(counting(100), {.batch_size = 20});
  expect_same_bits_when_resumed([] { return train::Trainer(small_task(0.1), small_training()); }, source, 7);
}

// Loss of the first step, and all parameters after it less those before: their gradient, at this rate of
// descent.
struct FirstStep {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients;
};

FirstStep first_step(Precision precision) {
  train::TrainerOptions options = small_training();
  options.optimizer = optim::sgd({.learning_rate = 1});
  options.precision = precision;
  train::Trainer trainer(small_task(0.1), options);
  const Checkpoint before = trainer.training_state();
  FirstStep result;
  train::FitOptions fit{.epochs = 1, .max_steps = 1};
  fit.on_step = [&](const train::StepEvent& event) { result.loss = event.measures.at("loss"); };
  trainer.fit(data::Rows(counting(40), {.batch_size = 40}), fit);
  const Checkpoint after = trainer.training_state();
  for (const auto& [name, tensor] : before.tensors) {
    if (tensor.data_type() != DataType::fp32 || tensor.size() == 1) continue;  // the trainer's own
    for (int64_t i = 0; i < tensor.size(); ++i)
      result.gradients[name].push_back(after.tensors.at(name).at(i) - tensor.at(i));
  }
  return result;
}

// A value on its way from the tokens to the loss is rounded about 24 times: the embeddings' sum, the
// convolution over neighbors with bias, gelu and sum (4), two times a norm, products with bias or gelu (8),
// dropout and sum, the last norm and the product with the words. Each moves it by half a unit at most, and
// what is normalized by as much of its deviation; these errors are independent. The loss is the difference of
// logits of at most sqrt(width) times the norm of a word's embedding, 0.02 sqrt(width). The gradient goes
// that way twice.
TEST(MaskedLanguageModel, InSixteenBitsGivesTheLossAndGradientsOfFullPrecision) {
  const auto independent = [](double roundings, double unit) { return 4 * std::sqrt(roundings) * unit / 2; };
  constexpr double kRoundings = 24;
  constexpr double kLargestLogit = 32 * 0.02;
  const FirstStep wide = first_step(Precision::fp32);
  for (const auto& [precision, unit] : {std::pair(Precision::fp16, 0x1p-11), {Precision::bf16, 0x1p-8}}) {
    const FirstStep narrow = first_step(precision);
    EXPECT_NEAR(narrow.loss, wide.loss, independent(kRoundings, unit) * 2 * kLargestLogit);
    EXPECT_NE(narrow.loss, wide.loss) << "nothing is rounded";
    double difference = 0;
    double whole = 0;
    for (const auto& [name, gradient] : wide.gradients) {
      for (size_t i = 0; i < gradient.size(); ++i) {
        difference += std::pow(narrow.gradients.at(name)[i] - gradient[i], 2);
        whole += std::pow(gradient[i], 2);
      }
    }
    EXPECT_GT(whole, 0);
    EXPECT_LT(std::sqrt(difference / whole), independent(2 * kRoundings, unit)) << to_string(precision);
  }
}

TEST(MaskedLanguageModel, HasOneTableForWordsInAndOut) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  const nn::Task task = small_task();
  task.training(context, nn::add_inputs(graph, task, {{"batch", 4}}));
  EXPECT_EQ(std::count_if(context.variables().begin(), context.variables().end(),
                          [](const nn::Variable& one) {
                            return one.shape == Shape{kVocabulary + 1, 32};
                          }),
            1);
  EXPECT_EQ(graph.find_input("words.weight")->uses().size(), 2U);
}

// How many places are to be filled in.
class PlaceCounter : public train::Evaluator {
 public:
  void add(const data::Batch& batch, const Feeds& outputs) override {
    for (int64_t row = 0; row < batch.samples; ++row) places_ += outputs.at("places").at(row);
  }
  train::Numbers results() const override { return {{"places", places_}}; }

 private:
  double places_ = 0;
};

TEST(MaskedLanguageModel, FillsInNoTokenThatIsToBeKept) {
  tasks::MaskedLanguageModelOptions options{.tokens = kTokens,
                                            .vocabulary = kVocabulary,
                                            .mask = 3,
                                            .kept = {0, 5},
                                            .width = 8,
                                            .heads = 1,
                                            .layers = 1,
                                            .masked = 1};
  const Tensor tokens = counting(60).at("tokens");
  int64_t others = 0;
  for (int64_t i = 0; i < tokens.size(); ++i) others += tokens.at(i) != 0 && tokens.at(i) != 5 ? 1 : 0;
  train::Trainer trainer(tasks::masked_language_model(options), small_training());
  PlaceCounter counter;
  trainer.evaluate(data::Rows(counting(60), {.batch_size = 20, .shuffle = false}), counter);
  EXPECT_EQ(counter.results().at("places"), static_cast<double>(others));
  const Feeds gaps = tasks::with_gaps(tokens, options);
  for (int64_t i = 0; i < tokens.size(); ++i) {
    const bool kept = tokens.at(i) == 0 || tokens.at(i) == 5;
    EXPECT_EQ(gaps.at("tokens").at(i), kept ? tokens.at(i) : 3);
  }
}

// A mask that is one of the vocabulary needs no row of its own.
TEST(MaskedLanguageModel, TakesAMaskOfTheVocabulary) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  const nn::Task task =
      tasks::masked_language_model({.tokens = kTokens, .vocabulary = kVocabulary, .mask = 11});
  task.training(context, nn::add_inputs(graph, task, {{"batch", 4}}));
  EXPECT_EQ(graph.find_input("words.weight")->shape()[0].value(), kVocabulary);
  EXPECT_ERROR(tasks::masked_language_model({.vocabulary = kVocabulary, .mask = kVocabulary}),
               ErrorCode::invalid_argument, "token 12 of a vocabulary of 12");
}

TEST(MaskedLanguageModel, NeedsHalves) {
  EXPECT_ERROR(tasks::masked_language_model({.tokens = 7}), ErrorCode::invalid_argument, "7 tokens");
}

}  // namespace
}  // namespace tessera::testing
