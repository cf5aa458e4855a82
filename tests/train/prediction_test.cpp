// What is served, for whoever asks a trainer for it.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "train/regression.h"

namespace tessera::testing {
namespace {

using train::Trainer;

// The line through the rows, served as "height" [rows]; evaluators read their distance from it.
nn::Task served_regression() {
  nn::Task task = regression();
  const auto height = [](nn::Context& context, const nn::Values& in) {
    return ops::reshape(nn::linear(context, "line", in["x"], 1), in["y"]->shape());
  };
  task.inference = [height](nn::Context& context, const nn::Values& in) -> nn::Values {
    return {{"height", height(context, in)}};
  };
  task.evaluation = [height](nn::Context& context, const nn::Values& in) -> nn::Values {
    return {{"distance", ops::subtract(height(context, in), in["y"])}};
  };
  return task;
}

class LastNames : public train::Evaluator {
 public:
  void add(const data::Batch& batch, const Feeds& outputs) override {
    samples += batch.samples;
    name = outputs.begin()->first;
  }
  train::Numbers results() const override { return {{"samples", static_cast<double>(samples)}}; }

  int64_t samples = 0;
  std::string name;
};

// Two sizes; the second batch has rows that only fill.
ListSource two_batches() {
  return {row_fields(), {rows_of(0, 4, 4), rows_of(4, 6, 3)}};
}

TEST(Predict, GivesWhatIsServedForEachExample) {
  Trainer trainer(served_regression(), on_cpu());
  trainer.fit(ListSource(row_fields(), {rows_of(0, 32, 32)}), {.epochs = 200});
  const Feeds all = trainer.predict(two_batches());
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all.at("height").shape(), Shape{7});
  const Tensor truth = rows_of(0, 7, 7).fields.at("y");
  // It was trained to hundredths of values of about four.
  for (int64_t i = 0; i < 7; ++i) EXPECT_NEAR(all.at("height").at(i), truth.at(i), 0.1);
  // Weights that have changed say something else.
  trainer.fit(ListSource(row_fields(), {rows_of(50, 1, 1)}), {.epochs = 201});
  EXPECT_FALSE(trainer.predict(two_batches()).at("height").identical(all.at("height")));
}

TEST(Predict, StopsAfterTheFirstExamples) {
  Trainer trainer(served_regression(), on_cpu());
  const Tensor all = trainer.predict(two_batches()).at("height");
  for (const int64_t count : {1, 4, 5, 7, 100}) {
    const Tensor some =
        trainer.predict(two_batches(), train::EvaluationLimits{.samples = count}).at("height");
    ASSERT_EQ(some.shape(), Shape{std::min<int64_t>(count, 7)});
    for (int64_t i = 0; i < some.size(); ++i) EXPECT_EQ(some.at(i), all.at(i));
  }
  const ListSource endless(row_fields(), {rows_of(0, 4, 4)}, true);
  EXPECT_EQ(trainer.predict(endless, {.samples = 10}).at("height").size(), 10);
  EXPECT_ERROR(trainer.predict(endless), ErrorCode::invalid_argument, "does not end");
}

TEST(Predict, ReadsOtherOutputsThanEvaluation) {
  Trainer trainer(served_regression(), on_cpu());
  LastNames evaluator;
  EXPECT_EQ(trainer.evaluate(two_batches(), evaluator, {.samples = 5}), 5);
  EXPECT_EQ(evaluator.samples, 5);
  EXPECT_EQ(evaluator.name, "distance");
  std::vector<std::string> names;
  const auto receive = [&](const data::Batch&, const Feeds& outputs) {
    names.push_back(outputs.begin()->first);
  };
  EXPECT_EQ(trainer.predict(two_batches(), receive), 7);
  EXPECT_EQ(names, (std::vector<std::string>{"height", "height"}));
}

TEST(Evaluations, MayBeOfTheFirstExamplesAlone) {
  const ListSource source = two_batches();
  train::FitOptions fit;
  for (const int64_t samples : {0, 5}) {
    fit.evaluations.push_back({.name = std::to_string(samples),
                               .source = &source,
                               .evaluator = [] { return std::make_unique<LastNames>(); },
                               .samples = samples});
  }
  Trainer trainer(served_regression(), on_cpu());
  const train::FitResult result = trainer.fit(ListSource(row_fields(), {rows_of(0, 8, 8)}), fit);
  EXPECT_EQ(result.evaluations[0]->results().at("samples"), 7);
  EXPECT_EQ(result.evaluations[1]->results().at("samples"), 5);
}

TEST(Predict, RefusesWhatHasNoAnswer) {
  Trainer silent(regression(), on_cpu());
  EXPECT_ERROR(silent.predict(two_batches()), ErrorCode::invalid_argument, "regression has nothing to serve");
  nn::Task mean = served_regression();
  mean.inference = [](nn::Context& context, const nn::Values& in) -> nn::Values {
    return {{"mean", ops::reduce_mean(nn::linear(context, "line", in["x"], 1))}};
  };
  Trainer trainer(mean, on_cpu());
  EXPECT_ERROR(trainer.predict(two_batches()), ErrorCode::unsupported, "'mean' is [], and has no row");
  // Those who take batches as they are get it.
  EXPECT_EQ(trainer.predict(two_batches(), [](const data::Batch&, const Feeds&) {}), 7);
}

TEST(PredictionTable, RefusesRowsThatDiffer) {
  train::PredictionTable table;
  const data::Batch batch{.samples = 1};
  table.add(batch, {{"y", Tensor(DataType::fp32, {2, 3})}}, 2);
  EXPECT_EQ(table.outputs().at("y").shape(), (Shape{1, 3}));
  EXPECT_ERROR(table.add(batch, {{"y", Tensor(DataType::fp32, {2, 4})}}, 2), ErrorCode::unsupported,
               "'y' is fp32[1, 3] for some batches and fp32[2, 4] for others");
}

TEST(PlainPredictionText, ShowsTheFirstNumbersOfEachOutput) {
  const auto text = train::plain_prediction_text("rows")();
  Tensor many(DataType::fp32, {2, 12});
  for (int64_t i = 0; i < 24; ++i) many.set(i, static_cast<double>(i));
  const Feeds outputs{{"few", Tensor::from<float>({2}, {0.123456F, -2})}, {"many", many}};
  EXPECT_EQ(text->tell({.samples = 2}, outputs),
            "rows, number 0:\n  few 0.1235\n  many 0 1 2 3 4 5 6 7 8 9 ... of 12\n"
            "rows, number 1:\n  few -2\n  many 12 13 14 15 16 17 18 19 20 21 ... of 12\n");
  EXPECT_EQ(text->tell({.samples = 1, .indices = {9}}, {{"few", Tensor::from<float>({1}, {1})}}),
            "rows, number 9:\n  few 1\n");
  EXPECT_EQ(text->summary(), "");
}

}  // namespace
}  // namespace tessera::testing
