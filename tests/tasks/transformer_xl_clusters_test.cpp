// Clusters of rare tokens that a Transformer-XL computes for so many places as batches have at most.
#include <algorithm>
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/base/rounding.h"
#include "tessera/data/token_lanes.h"
#include "tessera/recipe/run.h"
#include "tessera/tasks/transformer_xl.h"
#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/rank_training.h"

namespace tessera::testing {
namespace {

constexpr int64_t kTokens = 16;
constexpr int64_t kVocabulary = 20;
const std::vector<int64_t> kCutoffs{9, 14};

// The larger a token the rarer.
class RareTokens : public data::TokenText {
 public:
  RareTokens(int64_t size, uint64_t seed) : size_(size), random_(seed) {}
  int64_t size() const override { return size_; }
  void read(int64_t begin, std::span<int32_t> tokens) const override {
    for (int32_t& token : tokens) {
      const auto place = static_cast<uint64_t>(begin++);
      token = static_cast<int32_t>(
          std::min(random_.below(2 * place, kVocabulary), random_.below(2 * place + 1, kVocabulary)));
    }
  }

 private:
  int64_t size_;
  Random random_;
};

std::shared_ptr<const data::TokenLanes> lanes(int64_t batch, bool training = true) {
  return std::make_shared<const data::TokenLanes>(
      std::make_shared<const RareTokens>(training ? 1100 : 700, training ? 1 : 2),
      data::TokenLaneOptions{.length = kTokens, .batch_size = batch, .drop_last = training});
}

tasks::TransformerXlOptions options_of(bool counted, double dropout = 0) {
  tasks::TransformerXlOptions options{
      .network = {.vocabulary = {.tokens = kVocabulary, .cutoffs = kCutoffs, .narrowing = 2},
                  .width = 16,
                  .layers = 2,
                  .heads = 2,
                  .inner = 32,
                  .dropout = dropout},
      .tokens = kTokens,
      .memory = 8,
      .evaluation_memory = 12};
  if (!counted) return options;
  const auto most_labels = [](bool training) {
    return [=](int64_t rows, int64_t ranks) { return lanes(rows, training)->most_labels(kCutoffs, ranks); };
  };
  options.training_labels = most_labels(true);
  options.evaluation_labels = most_labels(false);
  return options;
}

// For how many rows each cluster is computed that is not computed for all.
std::vector<int64_t> picked_rows(const Graph& graph) {
  std::vector<int64_t> rows;
  for (const auto& node : graph.nodes()) {
    // Each picks its rows and their labels, one after the other.
    if (node->operator_name() == "set_rows") rows.push_back(node->output()->shape().front().value());
  }
  std::vector<int64_t> each;
  for (size_t i = 0; i < rows.size(); i += 2) each.push_back(rows[i]);
  return each;
}

std::vector<int64_t> rounded(std::vector<int64_t> most_labels) {
  for (int64_t& most : most_labels) most = round_up(most, 8);
  return most_labels;
}

const OptionChange kSizes = [](train::TrainerOptions& options, train::FitOptions&) {
  const int64_t ranks = options.communicator == nullptr ? 1 : options.communicator->size();
  options.sizes = {{"batch", kRankBatch / ranks}};
};
const TaskMaker kAll = [] { return tasks::transformer_xl(options_of(false, 0.1)); };
const TaskMaker kCounted = [] { return tasks::transformer_xl(options_of(true, 0.1)); };
const SourceMaker kSource = [](int64_t batch) { return lanes(batch); };

TEST(TransformerXlClusters, ComputeAsManyPlacesAsAnyBatchHasAtMost) {
  for (const int64_t ranks : {1, 2}) {
    const auto step = train::build_training_step(
        kCounted(), {.sizes = {{"batch", kRankBatch / ranks}}, .ranks = {.count = ranks}});
    EXPECT_EQ(picked_rows(*step.graph), rounded(lanes(kRankBatch / ranks)->most_labels(kCutoffs, ranks)));
  }
  const auto evaluation =
      train::build_frozen(kCounted(), train::Reading::evaluation, {{"batch", kRankBatch}});
  EXPECT_EQ(picked_rows(*evaluation.graph), rounded(lanes(kRankBatch, false)->most_labels(kCutoffs)));
  EXPECT_TRUE(picked_rows(*train::build_training_step(kAll(), {.sizes = {{"batch", 8}}}).graph).empty());
}

// An order of summation is worth 2^-24 a step and grows through the steps; a place that was left out would
// change the first digit.
TEST(TransformerXlClusters, TrainAsIfTheyWereComputedForAllPlacesOnAnyNumberOfRanks) {
  const Checkpoint all = state_of(1, kAll, kSizes, nullptr, kSource);
  for (const int64_t ranks : {1, 2}) {
    const std::vector<Trained> trained = train_on(ranks, kCounted, kSizes, nullptr, kSource);
    expect_close(all, trained.front().state, 2e-4);
    for (const Trained& other : trained)
      EXPECT_TRUE(different_tensors(trained.front().state.tensors, other.state.tensors).empty());
  }
}

train::Trainer make_trainer(const nn::Task& task, int64_t accumulate = 1) {
  return train::Trainer(task, {.optimizer = optim::adam({.learning_rate = 5e-3}),
                               .device = Device::open("cpu:threads=1"),
                               .accumulate = accumulate,
                               .sizes = {{"batch", kRankBatch}}});
}

TEST(TransformerXlClusters, ResumeToTheSameBits) {
  expect_same_bits_when_resumed([] { return make_trainer(kCounted()); }, *lanes(kRankBatch), 5);
  expect_same_bits_when_resumed([] { return make_trainer(kCounted(), 3); }, *lanes(kRankBatch), 2);
}

train::Numbers measured(train::Trainer& trainer) {
  const auto evaluator = tasks::transformer_xl_evaluator()();
  trainer.evaluate(*lanes(kRankBatch, false), *evaluator);
  return evaluator->results();
}

TEST(TransformerXlClusters, AreMeasuredAsIfTheyWereComputedForAllPlaces) {
  train::Trainer all = make_trainer(kAll()), counted = make_trainer(kCounted());
  const double perplexity = measured(all).at("perplexity");
  EXPECT_NEAR(measured(counted).at("perplexity"), perplexity, 1e-5 * perplexity);
}

TEST(TransformerXlClusters, EndTheTrainingWhereABatchHasMoreLabelsThanWasSaid) {
  tasks::TransformerXlOptions options = options_of(true);
  options.training_labels = [](int64_t, int64_t) { return std::vector<int64_t>{1, 1}; };
  options.evaluation_labels = options.training_labels;
  train::Trainer trainer = make_trainer(tasks::transformer_xl(options));
  EXPECT_TRUE(std::isnan(measured(trainer).at("perplexity")));
  EXPECT_ERROR(trainer.fit(*lanes(kRankBatch), {.epochs = 1}), ErrorCode::not_finite, nn::kLabelBeyondMost);
}

// Bytes from 'u' on are rare.
TEST(TransformerXlClusters, AreCountedInTheTextOfARecipe) {
  const TemporaryFolder folder;
  std::vector<int32_t> tokens(3000);
  RareTokens(3000, 4).read(0, tokens);
  std::ofstream text(folder / "text");
  for (const int32_t token : tokens) text << static_cast<char>('g' + token);
  text.close();
  const recipe::Recipe recipe = recipe::parse_recipe(
      "task.name = 'transformer_xl'\nmodel = {width = 16, heads = 2, layers = 1, cutoffs = [117]}\n"
      "data = {path = '" +
          (folder / "text").string() +
          "', tokens = 16}\n"
          "train = {epochs = 1, batch = 8, device = 'cpu'}",
      "rare");
  const train::Workload workload = recipe::make_workload(recipe);
  const auto most_labels = [](const data::Source& source) {
    int64_t most = 0;
    const auto stream = source.open({});
    while (const std::optional<data::Batch> batch = stream->next()) {
      const auto labels = batch->fields.at("labels").data<int32_t>();
      most =
          std::max<int64_t>(most, std::ranges::count_if(labels, [](int32_t label) { return label >= 117; }));
    }
    return std::vector<int64_t>{most};
  };
  const SymbolBindings sizes{{"batch", 8}};
  EXPECT_EQ(picked_rows(*train::build_training_step(workload.task, {.sizes = sizes}).graph),
            rounded(most_labels(*workload.training())));
  EXPECT_EQ(picked_rows(*train::build_frozen(workload.task, train::Reading::evaluation, sizes).graph),
            rounded(most_labels(*workload.test().source)));
  // Of another size there are no batches.
  EXPECT_TRUE(
      picked_rows(*train::build_training_step(workload.task, {.sizes = {{"batch", 9}}}).graph).empty());
  const auto result = recipe::run_recipe(recipe, {.folder = folder / "run", .quiet = true}).fit;
  EXPECT_TRUE(result.completed);
}

}  // namespace
}  // namespace tessera::testing
