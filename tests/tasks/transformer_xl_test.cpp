#include "tessera/tasks/transformer_xl.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/data/token_lanes.h"
#include "tessera/train/generation.h"
#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "train/rank_training.h"

namespace tessera::testing {
namespace {

constexpr int64_t kTokens = 4;
constexpr int64_t kVocabulary = 12;
constexpr int64_t kPeriod = 7;  // more than a segment

// Tokens drawn at random, each of which comes again after a period: only who remembers the segment before
// foretells it. It changes every few periods, so that nothing can be learned by heart.
class RepeatingText : public data::TokenText {
 public:
  explicit RepeatingText(int64_t size, uint64_t seed = 1) : size_(size), random_(seed) {}
  int64_t size() const override { return size_; }
  void read(int64_t begin, std::span<int32_t> tokens) const override {
    for (int32_t& token : tokens) {
      const int64_t stretch = begin / (10 * kPeriod);
      const auto place = static_cast<uint64_t>(stretch * kPeriod + begin % kPeriod);
      token = static_cast<int32_t>(random_.below(place, kVocabulary));
      ++begin;
    }
  }

 private:
  int64_t size_;
  Random random_;
};

std::shared_ptr<const data::Source> lanes(int64_t batch, int64_t size = 4000, bool training = true) {
  return std::make_shared<data::TokenLanes>(
      std::make_shared<const RepeatingText>(size, training ? 1 : 2),
      data::TokenLaneOptions{.length = kTokens, .batch_size = batch, .drop_last = training});
}

tasks::TransformerXlOptions small_options(double dropout = 0, int64_t memory = 8) {
  return {.network = {.vocabulary = {.tokens = kVocabulary, .cutoffs = {6}, .narrowing = 2},
                      .width = 16,
                      .layers = 2,
                      .heads = 2,
                      .inner = 32,
                      .dropout = dropout},
          .tokens = kTokens,
          .memory = memory,
          .evaluation_memory = 12};
}

constexpr int64_t kBatch = 8;

train::TrainerOptions small_training(int64_t batch = kBatch) {
  return {.optimizer = optim::adam({.learning_rate = 5e-3}),
          .device = Device::open("cpu:threads=1"),
          .sizes = {{"batch", batch}}};
}

train::Numbers measured(train::Trainer& trainer, int64_t batch = kBatch) {
  const auto evaluator = tasks::transformer_xl_evaluator()();
  trainer.evaluate(*lanes(batch, 1200, false), *evaluator);
  return evaluator->results();
}

// Without memory most of what comes is anyone's guess.
TEST(TransformerXlTask, ForetellsByWhatItRemembers) {
  const auto perplexity = [](int64_t memory, int64_t evaluation_memory) {
    tasks::TransformerXlOptions options = small_options(0, memory);
    options.evaluation_memory = evaluation_memory;
    train::Trainer trainer(tasks::transformer_xl(options), small_training());
    trainer.fit(*lanes(kBatch, 24000), {.epochs = 2});
    return measured(trainer).at("perplexity");
  };
  EXPECT_GT(perplexity(0, 0), 0.8 * kVocabulary);
  EXPECT_LT(perplexity(12, 12), 0.6 * kVocabulary);
}

TEST(TransformerXlTask, EvaluatesTheSameEachTimeWithALongerMemory) {
  train::Trainer trainer(tasks::transformer_xl(small_options()), small_training());
  const train::Numbers before = measured(trainer);
  // At first all of the head is alike, six tokens and a cluster, and so are the six tokens of the cluster.
  EXPECT_NEAR(before.at("perplexity"), std::sqrt(7.0 * 7 * 6), 0.5);
  EXPECT_NEAR(before.at("bits_per_token"), std::log2(before.at("perplexity")), 1e-6);
  EXPECT_FALSE(before.contains("bits_per_character"));
  // What one pass remembered is nothing to the next, and batches of another size have memories of theirs.
  EXPECT_EQ(measured(trainer), before);
  EXPECT_GT(measured(trainer, 4).at("perplexity"), 1);
  EXPECT_EQ(measured(trainer), before);
  // Nor to the training, nor to the weights.
  const Checkpoint state = trainer.training_state();
  EXPECT_EQ(state.tensors.at("layers.0.dec_attn.memory").shape(), (Shape{kBatch, 8, 16}));
  EXPECT_FALSE(state.tensors.contains("layers.0.dec_attn.evaluation_memory"));
  for (const auto& [name, tensor] : trainer.checkpoint().tensors)
    EXPECT_EQ(name.find("memory"), std::string::npos) << name;
}

TEST(TransformerXlTask, ResumesWithinAnEpochToTheSameBits) {
  const auto make = [] {
    return train::Trainer(tasks::transformer_xl(small_options(0.1)), small_training());
  };
  expect_same_bits_when_resumed(make, *lanes(kBatch, 400), 7);
}

TEST(TransformerXlTask, AccumulatesOverSegmentsThatGoOn) {
  const auto make = [] {
    train::TrainerOptions options = small_training();
    options.accumulate = 3;
    return train::Trainer(tasks::transformer_xl(small_options(0.1)), options);
  };
  expect_same_bits_when_resumed(make, *lanes(kBatch, 500), 2);
}

const OptionChange kSizes = [](train::TrainerOptions& options, train::FitOptions&) {
  const int64_t ranks = options.communicator == nullptr ? 1 : options.communicator->size();
  options.sizes = {{"batch", kRankBatch / ranks}};
};
const TaskMaker kTask = [] { return tasks::transformer_xl(small_options(0.1)); };
const SourceMaker kSource = [](int64_t batch) { return lanes(batch, 400); };

// Memories of lanes, too, are those of one rank with all of them.
TEST(TransformerXlTask, TrainsOnLanesThatRanksShareOutAsOneDoes) {
  const Checkpoint alone = state_of(1, kTask, kSizes, nullptr, kSource);
  EXPECT_EQ(alone.tensors.at("memory_tokens").shape(), (Shape{kRankBatch}));
  for (const int64_t ranks : {2, 4}) {
    const std::vector<Trained> trained = train_on(ranks, kTask, kSizes, nullptr, kSource);
    // An order of summation is worth 2^-24 a step, and grows through the steps; lanes that were mixed up
    // differ in the first digit.
    expect_close(alone, trained.front().state, 2e-4);
    for (const Trained& other : trained)
      EXPECT_TRUE(different_tensors(trained.front().state.tensors, other.state.tensors).empty());
  }
}

TEST(TransformerXlTask, GoesOnWithAnotherNumberOfRanks) {
  const auto stopped = [](train::TrainerOptions& options, train::FitOptions& fit) {
    kSizes(options, fit);
    fit.max_steps = 5;
  };
  const Checkpoint half = state_of(2, kTask, stopped, nullptr, kSource);
  const Checkpoint straight = state_of(2, kTask, kSizes, nullptr, kSource);
  const Checkpoint resumed = state_of(2, kTask, kSizes, &half, kSource);
  EXPECT_TRUE(different_tensors(straight.tensors, resumed.tensors).empty());
  expect_close(straight, state_of(1, kTask, kSizes, &half, kSource), 2e-4);
}

// Ranks that average now and then keep the memories of their own lanes.
TEST(TransformerXlTask, AveragesNoMemoriesAfterLocalSteps) {
  const auto local = [](train::TrainerOptions& options, train::FitOptions& fit) {
    kSizes(options, fit);
    options.local_steps = 3;
    options.optimizer.learning_rate = 0;
  };
  const auto fixed = [](train::TrainerOptions& options, train::FitOptions& fit) {
    kSizes(options, fit);
    options.optimizer.learning_rate = 0;
  };
  const Checkpoint alone = state_of(1, kTask, fixed, nullptr, kSource);
  const Checkpoint averaged = state_of(2, kTask, local, nullptr, kSource);
  for (const char* name : {"memory_tokens", "layers.0.dec_attn.memory", "layers.1.dec_attn.memory"}) {
    const Tensor &own = averaged.tensors.at(name), &other = alone.tensors.at(name);
    ASSERT_EQ(own.shape(), other.shape());
    for (int64_t i = 0; i < own.size(); ++i) ASSERT_NEAR(own.at(i), other.at(i), 1e-4) << name << i;
  }
}

// Evaluators of several ranks read lanes of their own, and add up to what one finds.
TEST(TransformerXlTask, EvaluatesLanesThatRanksShareOut) {
  train::Numbers alone;
  {
    train::Trainer trainer(kTask(), small_training());
    alone = measured(trainer);
  }
  std::vector<train::Numbers> shared(2);
  on_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    train::TrainerOptions options = small_training(kBatch / 2);
    options.communicator = communicator;
    train::Trainer trainer(kTask(), options);
    shared[static_cast<size_t>(communicator->rank())] = measured(trainer, kBatch / 2);
  });
  EXPECT_EQ(shared[0], shared[1]);
  EXPECT_NEAR(shared[0].at("perplexity"), alone.at("perplexity"), 1e-4);
}

// Passes over a text, blocks filled up and tokens one by one, say what one segment says of all of it.
TEST(TransformerXlTask, GoesOnWithTextAsItWasRead) {
  tasks::TransformerXlOptions options = small_options();
  options.tokens = 90;
  train::Trainer trainer(tasks::transformer_xl(options), small_training(1));
  const RepeatingText text(1000);
  std::vector<int32_t> tokens(90);
  text.read(0, tokens);
  const Tensor logits = trainer
                            .predict(data::TokenLanes(std::make_shared<const RepeatingText>(91),
                                                      {.length = 90, .batch_size = 1}))
                            .at("logits");
  const train::TextContinuation continuation{
      .passes = [&](int64_t capacity) { return tasks::transformer_xl_passes(options.network, capacity); }};
  const train::Serving serve = [&](const nn::Task& task) { return trainer.serve(task); };
  train::TextReader reader(continuation, serve, 90);
  for (const bool again : {false, true}) {
    int64_t read = 0;
    // A block of 64 and what fills up another one, then one token, then five.
    for (const int64_t count : {80, 1, 5}) {
      const Tensor said =
          reader.read(std::span(tokens).subspan(static_cast<size_t>(read), static_cast<size_t>(count)));
      read += count;
      for (int64_t token = 0; token < kVocabulary; ++token)
        EXPECT_NEAR(said.at(token), logits.at((read - 1) * kVocabulary + token), 1e-5) << read << again;
    }
    reader.forget();
  }
}

TEST(TransformerXlTask, MeasuresPerplexityAndBitsByWhatTokensStandFor) {
  const auto make = tasks::transformer_xl_evaluator([](std::span<const int32_t> tokens) {
    std::string text;
    for (const int32_t token : tokens) text += token == 0 ? "\xc3\xa9" : "abc";
    return text;
  });
  const auto one = make(), other = make();
  const auto batch = [](std::vector<int32_t> labels, int64_t samples) -> data::Batch {
    return {.fields = {{"labels", Tensor::from<int32_t>({2, 2}, labels)}}, .samples = samples};
  };
  one->add(batch({0, 1, 1, -100}, 2), {{"nats", Tensor::from<float>({2}, {2, 1})}});
  other->add(batch({0, 0, 1, 1}, 1), {{"nats", Tensor::from<float>({2}, {3, 100})}});
  one->merge(other->state());
  // Six nats of five tokens, and of 1 + 3 + 3 + 1 + 1 characters.
  const train::Numbers results = one->results();
  EXPECT_NEAR(results.at("perplexity"), std::exp(6.0 / 5), 1e-12);
  EXPECT_NEAR(results.at("bits_per_token"), 6.0 / 5 / std::numbers::ln2, 1e-12);
  EXPECT_NEAR(results.at("bits_per_character"), 6.0 / 9 / std::numbers::ln2, 1e-12);
  EXPECT_EQ(make()->results().at("perplexity"), 0);
}

TEST(TransformerXlTask, RefusesNoSegments) {
  EXPECT_ERROR(tasks::transformer_xl({.tokens = 0}), ErrorCode::invalid_argument, "segments of 0 tokens");
  EXPECT_ERROR(tasks::transformer_xl({.memory = -1}), ErrorCode::invalid_argument, "memories of -1");
}

}  // namespace
}  // namespace tessera::testing
