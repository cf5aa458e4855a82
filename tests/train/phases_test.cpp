// Several objectives, phases and groups of parameters.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/regression.h"

namespace tessera::testing {
namespace {

using train::FitOptions;
using train::FitResult;
using train::Trainer;
using train::TrainerOptions;

// Two networks against each other, a sketch of a GAN: `mover` shifts, `judge` tells shifted rows from others.
nn::Task adversaries() {
  const Dimension rows = Dimension::symbol("rows");
  return {.name = "adversaries",
          .network = "adversaries",
          .inputs = {{"x", {DataType::fp32, {rows, 3}}}},
          .metrics = {{.name = "judge"}, {.name = "mover"}},
          .training = [](nn::Context& context, const nn::Values& in) -> nn::Training {
            const auto judge = [&](Value* x) {
              const auto scope = context.scope("judge");
              return nn::linear(context, "fc", nn::dropout(context, x, 0.2), 1);
            };
            const auto loss = [](const char* name, Value* logits, double target) {
              return nn::mean_of(
                  name, ops::binary_cross_entropy(
                            logits, ops::broadcast_to(ops::constant_like(logits, target), logits->shape())));
            };
            Value* moved = nn::linear(context, "mover.fc", in["x"], 3);
            Value* of_moved = judge(moved);
            nn::Training training{.objectives = {loss("mover", of_moved, 1)}};
            if (context.trains("judge")) {
              const nn::Measure parts[] = {loss("real", judge(in["x"]), 1), loss("moved", of_moved, 0)};
              training.objectives.push_back(nn::total_of("judge", {parts[0], parts[1]}));
            }
            return training;
          }};
}

ListSource numbers(int64_t batches) {
  std::vector<data::Batch> list;
  for (int64_t i = 0; i < batches; ++i) {
    data::Batch batch = rows_of(4 * i, 4, 4);
    list.push_back({.fields = {{"x", batch.fields.at("x")}}, .sizes = batch.sizes, .samples = 4});
  }
  return {{adversaries().inputs}, list};
}

std::function<bool(const nn::Variable&)> named(const std::string& prefix) {
  return [prefix](const nn::Variable& variable) { return variable.name.starts_with(prefix); };
}

TrainerOptions two_phases(int64_t judge_repeats, bool same_batch) {
  TrainerOptions options = on_cpu();
  const optim::Optimizer adam = optim::adam({.learning_rate = 0.01});
  options.phases = {{.objective = "judge",
                     .groups = {{.takes = named("judge."), .optimizer = adam}},
                     .repeat = judge_repeats},
                    {.objective = "mover",
                     .groups = {{.takes = named("mover."), .optimizer = optim::sgd({.learning_rate = 0.1})}},
                     .same_batch = same_batch}};
  return options;
}

TEST(Phases, EachChangesItsOwnParametersOnItsOwnBatches) {
  struct Expected {
    int64_t repeats;
    bool same_batch;
    int64_t batches_of_step;
  };
  for (const auto& [repeats, same_batch, batches_of_step] :
       {Expected{1, true, 1}, {1, false, 2}, {3, true, 3}}) {
    Trainer trainer(adversaries(), two_phases(repeats, same_batch));
    const auto start = trainer.training_state().tensors;
    std::vector<train::StepEvent> events;
    FitOptions fit{.epochs = 1};
    fit.on_step = [&](const train::StepEvent& event) { events.push_back(event); };
    const FitResult result = trainer.fit(numbers(6), fit);
    EXPECT_EQ(result.position.step, 6 / batches_of_step);
    ASSERT_EQ(events.size(), 6U);
    EXPECT_EQ(events[0].measures.contains("mover"), same_batch && repeats == 1);
    EXPECT_TRUE(events[0].measures.contains("judge"));
    EXPECT_EQ(events[1].measures.contains("mover"), repeats == 1);
    const auto end = trainer.training_state().tensors;
    EXPECT_EQ(end.at("judge/optimizer_step").at(0), static_cast<double>(6 / batches_of_step * repeats));
    EXPECT_FALSE(end.at("judge.fc.weight").identical(start.at("judge.fc.weight")));
    EXPECT_FALSE(end.at("mover.fc.weight").identical(start.at("mover.fc.weight")));
    EXPECT_FALSE(end.contains("mover.fc.weight/mean"));
  }
}

// One phase of another, on the same batch, sees what the one before it has changed.
TEST(Phases, TheOrderOfTheirTurnsIsTheirOrder) {
  TrainerOptions options = two_phases(1, true);
  options.phases[1].groups[0].optimizer.learning_rate = 0;
  options.optimizer.learning_rate = 0;
  Trainer with_idle_mover(adversaries(), options);
  with_idle_mover.fit(numbers(4), {});
  options.phases.pop_back();
  options.phases[0].name = "judge";
  Trainer alone(adversaries(), options);
  alone.fit(numbers(4), {});
  EXPECT_TRUE(alone.training_state()
                  .tensors.at("mover.fc.weight")
                  .identical(with_idle_mover.training_state().tensors.at("mover.fc.weight")));
}

TEST(Phases, ResumeAfterAnyBatchToTheSameBits) {
  TrainerOptions options = two_phases(2, false);
  options.accumulate = 2;
  options.ema_decay = 0.5;
  const ListSource source = numbers(13);
  Trainer straight(adversaries(), options);
  straight.fit(source, {.epochs = 2});
  EXPECT_EQ(straight.training_state().metadata.at("step"), "4");
  for (int64_t stop = 1; stop < 24; stop += 3) {
    const TemporaryFolder folder;
    std::atomic<bool> stopped{false};
    FitOptions fit{.epochs = 2, .checkpoints = folder.path(), .stop = &stopped};
    int64_t batches = 0;
    fit.on_step = [&](const train::StepEvent&) { stopped = ++batches == stop; };
    Trainer first(adversaries(), options);
    EXPECT_FALSE(first.fit(source, fit).completed);
    Trainer second(adversaries(), options);
    second.restore(load_checkpoint(folder / "last.safetensors"), "last");
    EXPECT_TRUE(second.fit(source, {.epochs = 2}).completed);
    EXPECT_EQ(different_tensors(second.training_state().tensors, straight.training_state().tensors),
              std::vector<std::string>{})
        << stop;
  }
}

TEST(Phases, RefusalsSayWhatIsWrong) {
  const auto code = ErrorCode::invalid_argument;
  const ListSource source = numbers(4);
  TrainerOptions options = two_phases(1, true);
  options.phases[0].objective = "jugde";
  EXPECT_ERROR(Trainer(adversaries(), options), code, "no objective 'jugde'", "did you mean 'judge'");
  options = two_phases(1, true);
  options.phases[0].groups[0].takes = named("nobody");
  EXPECT_ERROR(Trainer(adversaries(), options), code, "no parameter is trained for 'judge'");
  options = two_phases(1, true);
  std::swap(options.phases[0], options.phases[1]);
  EXPECT_ERROR(Trainer(adversaries(), options).fit(source, {}), code, "'mover'",
               "no batch of a phase before it");
  options = two_phases(0, true);
  EXPECT_ERROR(Trainer(adversaries(), options).fit(source, {}), code, "'judge' repeats 0 times");
  options = two_phases(5, true);
  EXPECT_ERROR(Trainer(adversaries(), options).fit(source, {}), code, "4 batches", "5");
  nn::Task task = adversaries();
  EXPECT_ERROR(Trainer(task, on_cpu()), code, "no objective ''", "mover, judge");
}

// Each group has its rate and schedule; what no group takes stays, and so does what is not trainable.
TEST(Groups, HaveRatesOfTheirOwn) {
  TrainerOptions options = on_cpu();
  const auto sgd = [](double rate) { return optim::sgd({.learning_rate = rate, .momentum = 0}); };
  const auto bias = [](const nn::Variable& variable) { return variable.name.ends_with(".bias"); };
  options.phases = {
      {.groups = {
           {.takes = named("line.weight"), .optimizer = sgd(0.1)},
           {.name = "biases", .takes = bias, .optimizer = sgd(0.2), .schedule = [](int64_t total, int64_t) {
              return optim::step({total - 1}, 0);
            }}}}};
  const ListSource source(row_fields(), {rows_of(0, 4, 4), rows_of(4, 4, 4)});
  Trainer trainer(regression(), options);
  std::vector<Tensor> biases{trainer.training_state().tensors.at("line.bias")};
  FitOptions fit;
  fit.on_step = [&](const train::StepEvent& event) {
    EXPECT_FLOAT_EQ(static_cast<float>(event.learning_rate), 0.1F);  // of the first group
    biases.push_back(trainer.training_state().tensors.at("line.bias"));
  };
  trainer.fit(source, fit);
  EXPECT_FALSE(biases[1].identical(biases[0]));
  EXPECT_TRUE(biases[2].identical(biases[1]));  // the second step's rate is 0

  options.phases[0].groups.pop_back();
  Trainer partial(regression(), options);
  partial.fit(source, {});
  EXPECT_TRUE(partial.training_state().tensors.at("line.bias").identical(biases[0]));
}

TEST(Groups, WhatIsNotTrainableStays) {
  nn::Task task = regression();
  task.training = [](nn::Context& context, const nn::Values& in) -> nn::Training {
    Value* frozen = context.variable(
        {.name = "frozen", .shape = {3, 1}, .initializer = nn::normal(1), .trainable = false});
    Value* y = ops::add(ops::matmul(in["x"], frozen), nn::linear(context, "line", in["x"], 1));
    return {.objectives = {nn::mean_of("error", ops::square(y))}};
  };
  Trainer trainer(task, on_cpu());
  EXPECT_EQ(trainer.parameter_count(), 3 + 3 + 1);
  const auto start = trainer.training_state().tensors;
  trainer.fit(ListSource(row_fields(), {rows_of(0, 4, 4)}), {});
  EXPECT_EQ(different_tensors(trainer.training_state().tensors, start),
            (std::vector<std::string>{"line.bias", "line.weight"}));
}

// Weights in 16 bits, that the rule sees in fp32.
TEST(Groups, ParametersMayBeOfOtherTypes) {
  nn::Task task = regression();
  task.training = [](nn::Context& context, const nn::Values& in) -> nn::Training {
    Value* weight = context.variable(
        {.name = "weight", .shape = {3, 1}, .initializer = nn::normal(1), .data_type = DataType::bf16});
    Value* y = ops::reshape(ops::matmul(in["x"], ops::cast(weight, DataType::fp32)), in["y"]->shape());
    return {.objectives = {nn::mean_of("error", ops::square(ops::subtract(y, in["y"])))}};
  };
  TrainerOptions options = on_cpu();
  options.ema_decay = 0.5;
  Trainer trainer(task, options);
  const FitResult result = trainer.fit(ListSource(row_fields(), {rows_of(0, 8, 8)}), {.epochs = 60});
  EXPECT_LT(result.history.epochs.back().measures.at("error"),
            0.1 * result.history.epochs[0].measures.at("error"));
  EXPECT_EQ(trainer.training_state().tensors.at("weight").data_type(), DataType::bf16);
}

}  // namespace
}  // namespace tessera::testing
