// Stages of one run: what goes on with other data, sizes and rates.
#include <cmath>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "train/regression.h"

namespace tessera::testing {
namespace {

using train::Carried;
using train::FitOptions;
using train::Trainer;
using train::TrainerOptions;

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

TrainerOptions by_adam(double rate, int64_t accumulate = 1) {
  TrainerOptions options = on_cpu();
  options.optimizer =
      optim::adam({.learning_rate = rate, .beta1 = kBeta1, .beta2 = kBeta2, .epsilon = kEpsilon});
  options.accumulate = accumulate;
  return options;
}

// Of so many rows each, all of which count.
std::vector<data::Batch> batches_of(int64_t rows, int64_t count) {
  std::vector<data::Batch> batches;
  for (int64_t i = 0; i < count; ++i) batches.push_back(rows_of(i * rows, rows, rows));
  return batches;
}

ListSource source_of(int64_t rows, int64_t count) {
  return {row_fields(), batches_of(rows, count)};
}

optim::Schedule warmed(int64_t, int64_t) {
  return optim::warmup(3, optim::constant());
}

// Adam on a line of three weights and a bias, in double.
struct Adam {
  double values[4] = {};
  double first[4] = {};
  double second[4] = {};
  int64_t steps = 0;  // of which the bias of the moments is corrected

  void update(const std::vector<data::Batch>& batches, double rate) {
    double gradient[4] = {};
    double rows = 0;
    for (const data::Batch& batch : batches) {
      const Tensor& x = batch.fields.at("x");
      const Tensor& y = batch.fields.at("y");
      for (int64_t row = 0; row < y.size(); ++row, ++rows) {
        double error = values[3] - y.at(row);
        for (int64_t i = 0; i < 3; ++i) error += values[i] * x.at(3 * row + i);
        for (int64_t i = 0; i < 3; ++i) gradient[i] += 2 * error * x.at(3 * row + i);
        gradient[3] += 2 * error;
      }
    }
    ++steps;
    for (int64_t i = 0; i < 4; ++i) {
      const double g = gradient[i] / rows;
      first[i] = kBeta1 * first[i] + (1 - kBeta1) * g;
      second[i] = kBeta2 * second[i] + (1 - kBeta2) * g * g;
      const double mean = first[i] / (1 - std::pow(kBeta1, steps));
      const double square = second[i] / (1 - std::pow(kBeta2, steps));
      values[i] -= rate * mean / (std::sqrt(square) + kEpsilon);
    }
  }
};

Adam adam_of(const Checkpoint& state) {
  Adam adam;
  for (int64_t i = 0; i < 3; ++i) adam.values[i] = state.tensors.at("line.weight").at(i);
  adam.values[3] = state.tensors.at("line.bias").at(0);
  return adam;
}

// Four steps on four rows, then three on twice five rows, by another rate that rises anew.
TEST(Stages, AreTheDescentThatIsWrittenByHand) {
  for (const Carried carried : {Carried::moments, Carried::all}) {
    Trainer first(regression(), by_adam(0.1));
    Adam adam = adam_of(first.training_state());
    const ListSource short_rows = source_of(4, 4);
    const train::FitResult result = first.fit(short_rows, {.schedule = warmed});
    for (int64_t step = 0; step < 4; ++step)
      adam.update({batches_of(4, 4)[static_cast<size_t>(step)]}, 0.1 * warmed(4, 4).factor(step));
    const Checkpoint state = first.training_state();
    EXPECT_EQ(result.history.epochs.front().stage, 0);

    Trainer second(regression(), by_adam(0.02, 2));
    second.begin_stage(state, "first", carried);
    EXPECT_EQ(second.position().stage.index, 1);
    const ListSource long_rows = source_of(5, 6);
    std::vector<double> rates;
    FitOptions fit{.schedule = warmed};
    fit.on_step = [&](const train::StepEvent& event) { rates.push_back(event.learning_rate); };
    const train::FitResult last = second.fit(long_rows, fit);
    if (carried == Carried::moments) adam.steps = 0;
    const std::vector<data::Batch> batches = batches_of(5, 6);
    for (size_t step = 0; step < 3; ++step) {
      const double rate = 0.02 * warmed(3, 3).factor(static_cast<int64_t>(step));
      adam.update({batches[2 * step], batches[2 * step + 1]}, rate);
      EXPECT_FLOAT_EQ(static_cast<float>(rates[2 * step]), static_cast<float>(rate));
    }
    const Adam reached = adam_of(second.training_state());
    // 1 - 0.999 in float is off by 3e-5 of itself, and so by half of that is an update, of at most 0.1.
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(reached.values[i], adam.values[i], 5e-6) << i;

    EXPECT_TRUE(last.completed);
    EXPECT_EQ(last.position.step, 7);
    EXPECT_EQ(last.position.epoch, 2);
    ASSERT_EQ(last.history.epochs.size(), 2U);
    EXPECT_EQ(last.history.epochs[1].stage, 1);
    EXPECT_EQ(last.history.epochs[1].epoch, 2);
  }
}

// Also where a stage's steps end within an epoch: the next one begins with the epoch after it.
TEST(Stages, EndAfterTheirSteps) {
  Trainer first(regression(), by_adam(0.1));
  EXPECT_TRUE(first.fit(source_of(4, 4), {.steps = 6}).completed);
  Trainer second(regression(), by_adam(0.1));
  second.begin_stage(first.training_state(), "first");
  EXPECT_EQ(second.position().epoch, 2);
  EXPECT_EQ(second.position().batch, 0);
  EXPECT_EQ(second.position().stage.step, 6);
  const train::FitResult result = second.fit(source_of(4, 4), {.steps = 3});
  EXPECT_TRUE(result.completed);
  EXPECT_EQ(result.position.step, 9);
}

TEST(Stages, GoOnWhereTheyWereStopped) {
  const ListSource short_rows = source_of(4, 3);
  const ListSource long_rows = source_of(5, 4);
  Trainer first(regression(), by_adam(0.1));
  first.fit(short_rows, {.epochs = 2, .schedule = warmed});
  const Checkpoint border = first.training_state();
  const auto run = [&](int64_t stop) {
    Trainer trainer(regression(), by_adam(0.02));
    trainer.begin_stage(border, "border");
    trainer.fit(long_rows, {.epochs = 2, .schedule = warmed, .max_steps = stop});
    Trainer again(regression(), by_adam(0.02));
    again.restore(trainer.training_state(), "stopped");
    EXPECT_TRUE(again.fit(long_rows, {.epochs = 2, .schedule = warmed}).completed);
    return again.training_state();
  };
  const Checkpoint straight = run(0);
  EXPECT_EQ(straight.metadata.at("step"), "14");
  EXPECT_EQ(straight.metadata.at("stage"), "1");
  EXPECT_EQ(straight.metadata.at("stage_epoch"), "2");
  EXPECT_EQ(straight.metadata.at("stage_step"), "6");
  for (const int64_t stop : {6, 7, 10, 12})
    EXPECT_EQ(different_tensors(run(stop).tensors, straight.tensors), std::vector<std::string>{}) << stop;
}

TEST(Stages, RefuseTheStateOfAnotherNetworkOrOptimizer) {
  Trainer first(regression(), by_adam(0.1));
  Trainer second(regression(), on_cpu());
  EXPECT_ERROR(second.begin_stage(first.training_state(), "first"), ErrorCode::invalid_file, "first",
               "optimizer", "adam", "sgd");
}

}  // namespace
}  // namespace tessera::testing
