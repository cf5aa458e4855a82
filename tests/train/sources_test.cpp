// Batches of what differs: weights, sizes, ends; and what is evaluated when.
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

std::map<std::string, Tensor> trained(const nn::Task& task, const TrainerOptions& options,
                                      const data::Source& source, const FitOptions& fit = {}) {
  Trainer trainer(task, options);
  trainer.fit(source, fit);
  return trainer.training_state().tensors;
}

// Weights of about one, which a step rounds to fp32 some eight times in another order.
constexpr double kStep = 8 * 0x1p-24;

// Sums and weights add up where means do not: three batches of 4, 1 and 3 rows make the gradient of one of 8.
TEST(Accumulation, WeighsEachBatchByWhatCountsInIt) {
  data::Batch whole = rows_of(0, 12, 12);
  for (const int64_t row : {5, 6, 7, 11}) whole.fields.at("counts").set(row, 0);
  const ListSource large(row_fields(), {whole});
  const ListSource parts(row_fields(), {rows_of(0, 4, 4), rows_of(4, 4, 1), rows_of(8, 4, 3)});
  TrainerOptions accumulating = on_cpu();
  accumulating.accumulate = 3;
  const auto expected = trained(regression(), on_cpu(), large);
  const auto actual = trained(regression(), accumulating, parts);
  for (const char* name : {"line.weight", "line.bias"}) {
    for (int64_t i = 0; i < expected.at(name).size(); ++i) {
      EXPECT_NEAR(actual.at(name).at(i), expected.at(name).at(i), kStep) << name;
    }
  }
  EXPECT_EQ(actual.at("accumulated_weight").at(0), 0);
}

TEST(Accumulation, RowsThatDoNotCountChangeNothing) {
  const auto all = trained(regression(), on_cpu(), ListSource(row_fields(), {rows_of(0, 4, 4)}));
  const auto some = trained(regression(), on_cpu(), ListSource(row_fields(), {rows_of(0, 9, 4)}));
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(all.at("line.weight").at(i), some.at("line.weight").at(i), kStep);
  // Not even where none counts.
  const auto none = trained(regression(), on_cpu(), ListSource(row_fields(), {rows_of(0, 4, 0)}));
  const auto start = Trainer(regression(), on_cpu()).training_state().tensors;
  EXPECT_EQ(different_tensors(none, start), std::vector<std::string>{});
}

// Batches of several sizes, in turn, by one set of weights.
TEST(Sizes, ABucketedSourceTrainsAsOneThatFillsUp) {
  const ListSource bucketed(row_fields(), {rows_of(0, 4, 4), rows_of(4, 2, 2), rows_of(6, 4, 4)});
  const ListSource filled(row_fields(), {rows_of(0, 4, 4), rows_of(4, 4, 2), rows_of(6, 4, 4)});
  EXPECT_EQ(bucketed.sizes().size(), 2U);
  const auto a = trained(regression(), on_cpu(), bucketed, {.epochs = 4});
  const auto b = trained(regression(), on_cpu(), filled, {.epochs = 4});
  constexpr int kSteps = 4 * 3;
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(a.at("line.weight").at(i), b.at("line.weight").at(i), kSteps * kStep);
}

TEST(Sizes, AStateAsWideAsTheBatchIsTrained) {
  nn::Task task = regression();
  task.training = [](nn::Context& context, const nn::Values& in) -> nn::Training {
    Value* memory = context.state("memory", to_static(in["y"]->shape()), nn::zeros());
    context.update(memory, in["y"]);
    Value* y = ops::reshape(nn::linear(context, "line", in["x"], 1), in["y"]->shape());
    return {.objectives = {nn::mean_of("error", ops::square(ops::subtract(y, memory)))}};
  };
  const data::Batch batch = rows_of(0, 5, 5);
  const ListSource source(row_fields(), {batch});
  Trainer trainer(task, on_cpu());
  trainer.fit(source, {});
  const Checkpoint state = trainer.training_state();
  EXPECT_TRUE(state.tensors.at("memory").identical(batch.fields.at("y")));
  // Other sizes would lose what it holds; a new trainer is told them before it takes it up.
  EXPECT_ERROR(trainer.fit(ListSource(row_fields(), {rows_of(0, 4, 4)}), {.epochs = 2}),
               ErrorCode::invalid_argument, "'memory' is [5] so far, and [4]");
  Trainer unaware(task, on_cpu());
  EXPECT_ERROR(unaware.restore(state, "last"), ErrorCode::invalid_file, "memory", "[5]");
  TrainerOptions options = on_cpu();
  options.sizes = {{"rows", 5}};
  Trainer other(task, options);
  other.restore(state, "last");
  EXPECT_TRUE(other.fit(source, {.epochs = 2}).completed);
}

TEST(Sources, OneWithoutEndTrainsForItsSteps) {
  const ListSource source(row_fields(), {rows_of(0, 4, 4), rows_of(4, 4, 4), rows_of(8, 4, 4)}, true);
  EXPECT_ERROR(Trainer(regression(), on_cpu()).fit(source, {}), ErrorCode::invalid_argument, "does not end",
               "steps");
  Trainer trainer(regression(), on_cpu());
  const FitResult result = trainer.fit(source, {.steps = 7});
  EXPECT_TRUE(result.completed);
  EXPECT_EQ(result.position.step, 7);
  EXPECT_EQ(result.position.batch, 7);
  ASSERT_EQ(result.history.epochs.size(), 1U);
  EXPECT_EQ(result.history.epochs[0].step, 7);

  // In two halves, with what the source says of its place.
  const TemporaryFolder folder;
  Trainer first(regression(), on_cpu());
  EXPECT_FALSE(first.fit(source, {.steps = 7, .checkpoints = folder.path(), .max_steps = 4}).completed);
  Trainer second(regression(), on_cpu());
  second.restore(load_checkpoint(folder / "last.safetensors"), "last");
  EXPECT_TRUE(second.fit(source, {.steps = 7}).completed);
  EXPECT_EQ(different_tensors(trainer.training_state().tensors, second.training_state().tensors),
            std::vector<std::string>{});
}

TEST(Sources, StepsMayEndWithinAnEpoch) {
  const ListSource source(row_fields(), {rows_of(0, 4, 4), rows_of(4, 4, 4), rows_of(8, 4, 4)});
  Trainer trainer(regression(), on_cpu());
  const FitResult result = trainer.fit(source, {.steps = 5});
  EXPECT_TRUE(result.completed);
  EXPECT_EQ(result.position.step, 5);
  EXPECT_EQ(result.history.epochs.size(), 2U);
}

// Counts the rows that it is given; its result falls from pass to pass.
class Falling : public train::Evaluator {
 public:
  explicit Falling(double value) : value_(value) {}
  void add(const data::Batch& batch, const Feeds& outputs) override {
    EXPECT_EQ(outputs.at("y").shape(), batch.fields.at("y").shape());
  }
  train::Numbers results() const override { return {{"error", value_}}; }

 private:
  double value_;
};

nn::Task evaluated_regression() {
  nn::Task task = regression();
  task.inference = [](nn::Context& context, const nn::Values& in) -> nn::Values {
    return {{"y", ops::reshape(nn::linear(context, "line", in["x"], 1), in["y"]->shape())}};
  };
  return task;
}

TEST(Evaluations, HaveNamesAndTurnsAndTheBestIsKept) {
  const TemporaryFolder folder;
  const ListSource source(row_fields(), {rows_of(0, 4, 4), rows_of(4, 4, 4), rows_of(8, 4, 4)});
  const ListSource held_out(row_fields(), {rows_of(30, 2, 2), rows_of(32, 3, 3)});
  Trainer trainer(evaluated_regression(), on_cpu());
  const double results[] = {5, 3, 4, 3};
  size_t passes = 0;
  FitOptions fit{.epochs = 3, .checkpoints = folder.path()};
  fit.evaluations = {
      {.name = "held_out",
       .source = &held_out,
       .evaluator = [&] { return std::make_unique<Falling>(results[passes++ % 4]); },
       .every_epochs = 0,
       .every_steps = 2},
      {.name = "often", .source = &source, .evaluator = [] { return std::make_unique<Falling>(1); }}};
  std::map<int64_t, Tensor> weights;
  fit.on_step = [&](const train::StepEvent& event) {
    weights[event.position.step] = trainer.training_state().tensors.at("line.weight");
  };
  const FitResult result = trainer.fit(source, fit);
  std::vector<std::string> rows;
  for (const train::EvaluationRow& row : result.history.evaluations)
    rows.push_back(row.name + " " + std::to_string(row.step) + " " +
                   std::to_string(row.results.at("error")).substr(0, 1));
  EXPECT_EQ(rows, (std::vector<std::string>{"held_out 2 5", "often 3 1", "held_out 4 3", "held_out 6 4",
                                            "often 6 1", "held_out 8 3", "held_out 9 5", "often 9 1"}));
  ASSERT_EQ(result.evaluations.size(), 2U);
  EXPECT_EQ(result.evaluations[0]->results().at("error"), 5);
  // 3, smaller than what was before and no larger than what came after.
  EXPECT_TRUE(
      load_checkpoint(folder / "best.safetensors").tensors.at("line.weight").identical(weights.at(4)));
}

TEST(Evaluations, NeedSomethingToEvaluate) {
  const ListSource source(row_fields(), {rows_of(0, 4, 4)});
  Trainer trainer(regression(), on_cpu());
  Falling evaluator(1);
  EXPECT_ERROR(trainer.evaluate(source, evaluator), ErrorCode::invalid_argument,
               "regression has nothing to evaluate");
}

}  // namespace
}  // namespace tessera::testing
