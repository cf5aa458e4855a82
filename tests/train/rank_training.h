// Trainings on several ranks, which are threads, and what becomes of their states.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/nn/loss.h"

#include "support/ranks.h"
#include "train/tiny.h"

namespace tessera::testing {

inline constexpr int64_t kRankBatch = 8;  // of all ranks

using TaskMaker = std::function<nn::Task()>;
using SourceMaker = std::function<std::shared_ptr<const data::Source>(int64_t batch)>;
using OptionChange = std::function<void(train::TrainerOptions&, train::FitOptions&)>;

inline train::TrainerOptions rank_options() {
  return {.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9}),
          .precision = Precision::fp32,
          .device = Device::open("cpu:threads=1"),
          .seed = 5};
}

inline std::shared_ptr<const data::Source> tiny_source(int64_t batch) {
  return std::make_shared<data::Loader>(tiny_loader(batch));
}

struct Trained {
  Checkpoint state;
  train::FitResult result;
};

// By so many ranks; what each of them has then.
inline std::vector<Trained> train_on(int64_t ranks, const TaskMaker& task, const OptionChange& change = {},
                                     const Checkpoint* from = nullptr,
                                     const SourceMaker& source = tiny_source) {
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  on_ranks(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
    train::TrainerOptions options = rank_options();
    if (ranks > 1) options.communicator = communicator;
    train::FitOptions fit{.epochs = 2};
    if (change) change(options, fit);
    train::Trainer trainer(task(), options);
    if (from != nullptr) trainer.restore(*from, "the state");
    Trained& own = trained[static_cast<size_t>(communicator->rank())];
    own.result = trainer.fit(*source(kRankBatch / ranks), fit);
    own.state = trainer.training_state();
  });
  return trained;
}

inline Checkpoint state_of(int64_t ranks, const TaskMaker& task, const OptionChange& change = {},
                           const Checkpoint* from = nullptr, const SourceMaker& source = tiny_source) {
  return std::move(train_on(ranks, task, change, from, source).front().state);
}

inline void expect_close(const Checkpoint& one, const Checkpoint& other, double tolerance) {
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (const auto& [name, tensor] : one.tensors) {
    SCOPED_TRACE(name);
    const Tensor& same = other.tensors.at(name);
    ASSERT_EQ(tensor.shape(), same.shape());
    for (int64_t i = 0; i < tensor.size(); ++i)
      ASSERT_NEAR(tensor.at(i), same.at(i), tolerance * (1 + std::abs(tensor.at(i)))) << i;
  }
}

// Rounding grows through the steps of a training; an order of summation is worth 2^-24 a step, and what is
// trained wrongly differs in the second digit.
inline void expect_same_training(const TaskMaker& task, const OptionChange& change = {},
                                 double tolerance = 2e-4) {
  const Checkpoint alone = state_of(1, task, change);
  for (const int64_t ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const std::vector<Trained> trained = train_on(ranks, task, change);
    expect_close(alone, trained.front().state, tolerance);
    for (const Trained& other : trained)
      EXPECT_TRUE(different_tensors(trained.front().state.tensors, other.state.tensors).empty());
    const Checkpoint again = state_of(ranks, task, change);
    EXPECT_TRUE(different_tensors(trained.front().state.tensors, again.tensors).empty());
  }
}

// A table of 9 words, of which a batch reads 8 at most, before a layer.
inline nn::Task row_task() {
  const Dimension batch = Dimension::symbol("batch");
  return {.name = "table",
          .network = "table",
          .inputs = {{"words", {DataType::int32, {batch, 2}}}, {"y", {DataType::fp32, {batch, 3}}}},
          .training = [](nn::Context& context, const nn::Values& in) -> nn::Training {
            Value* rows = nn::embedding(context, "words", in["words"], 9, 3, {.updates_rows = true});
            Value* y = nn::linear(context, "fc", ops::reduce_sum(rows, {.axes = {1}}), 3);
            return {.objectives = {nn::mean_of("error", ops::square(ops::subtract(y, in["y"])))}};
          }};
}

inline std::shared_ptr<const data::Source> row_source(int64_t batch) {
  Tensor words(DataType::int32, {48, 2});
  Tensor y(DataType::fp32, {48, 3});
  const Random random(2);
  for (int64_t i = 0; i < words.size(); ++i) words.set(i, static_cast<double>(random.below(i, 8)));
  for (int64_t i = 0; i < y.size(); ++i) y.set(i, random.normal(static_cast<uint64_t>(1000 + i)));
  return std::make_shared<data::Rows>(Feeds{{"words", words}, {"y", y}},
                                      data::BatchOptions{.batch_size = batch, .seed = 3});
}

}  // namespace tessera::testing
