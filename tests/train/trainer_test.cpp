// Whole trainings of tiny networks: they learn, stop, resume bit for bit, and fail loudly.
#include "tessera/train/trainer.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/nn/layers.h"

#include "support/detached_device.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using train::FitOptions;
using train::FitResult;
using train::Trainer;
using train::TrainerOptions;

TrainerOptions tiny_training() {
  return {.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9}), .device = Device::cpu()};
}

TEST(Trainer, TeachesNetworksOnEachDevice) {
  for (const auto& device : {Device::reference(), Device::cpu()}) {
    for (const nn::Task& task : {tiny_perceptron(), tiny_resnet()}) {
      TrainerOptions options = tiny_training();
      options.device = device;
      Trainer trainer(task, options);
      const data::Loader evaluation = tiny_evaluation();
      std::vector<double> losses;
      FitOptions fit{.epochs = 8, .evaluations = {evaluation_by(evaluation)}};
      fit.on_epoch = [&](const train::EpochRow& row, const auto& evaluations) {
        losses.push_back(row.measures.at("loss"));
      };
      const FitResult result = trainer.fit(tiny_loader(), fit);
      const std::string where = device->description().name + " " + task.network;
      EXPECT_TRUE(result.completed);
      EXPECT_EQ(result.position.step, 8 * 6) << where;
      ASSERT_EQ(losses.size(), 8U);
      EXPECT_LT(losses.back(), 0.25 * losses.front()) << where;
      EXPECT_GT(result.history.evaluations.back().results.at("accuracy"), 0.9) << where;
      tasks::ClassificationEvaluator evaluator;
      EXPECT_EQ(trainer.evaluate(evaluation, evaluator), 45) << where;
      EXPECT_EQ(evaluator.predictions().size(), 45U) << where;
    }
  }
}

TEST(Trainer, TakesTheDevicesPrecisionUnlessOneIsNamed) {
  TrainerOptions options = tiny_training();
  EXPECT_EQ(Trainer(tiny_perceptron(), options).precision(), Precision::fp32);
  options.precision = Precision::bf16;
  EXPECT_EQ(Trainer(tiny_perceptron(), options).precision(), Precision::bf16);
}

// It is a permission to round, of which a processor makes no use.
TEST(Trainer, ComputesInFp32OnAProcessorWhereTf32IsAskedFor) {
  std::vector<double> losses;
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    TrainerOptions options = tiny_training();
    options.precision = precision;
    losses.push_back(
        Trainer(tiny_resnet(), options).fit(tiny_loader(), {}).history.epochs.back().measures.at("loss"));
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(Trainer, LowPrecisionReachesTheSameLoss) {
  std::map<Precision, double> losses;
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    for (const nn::Task& task : {tiny_perceptron(), tiny_resnet()}) {
      TrainerOptions options = tiny_training();
      options.precision = precision;
      Trainer trainer(task, options);
      losses[precision] = trainer.fit(tiny_loader(), {.epochs = 6}).history.epochs.back().measures.at("loss");
      EXPECT_LT(losses[precision], 0.3) << to_string(precision) << " " << task.network;
    }
  }
}

TEST(Trainer, SameSeedSameBitsAnotherSeedOthers) {
  const auto train = [](uint64_t seed) {
    TrainerOptions options = tiny_training();
    options.seed = seed;
    Trainer trainer(tiny_perceptron(0.5), options);
    trainer.fit(tiny_loader(), {.epochs = 1});
    return trainer.training_state().tensors;
  };
  const auto first = train(1);
  EXPECT_TRUE(different_tensors(first, train(1)).empty());
  EXPECT_FALSE(different_tensors(first, train(2)).empty());
}

// Recomputed activations have the bits of those that were kept.
TEST(Trainer, RecomputingChangesNoBit) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    std::vector<double> losses[2];
    std::map<std::string, Tensor> variables[2];
    int64_t peaks[2];
    for (const bool recompute : {false, true}) {
      TrainerOptions options = tiny_training();
      options.precision = precision;
      options.recompute = recompute;
      Trainer trainer(tiny_resnet(), options);
      FitOptions fit{.max_steps = 3};
      fit.on_step = [&](const train::StepEvent& event) {
        losses[recompute].push_back(event.measures.at("loss"));
      };
      trainer.fit(tiny_loader(), fit);
      variables[recompute] = trainer.training_state().tensors;
      peaks[recompute] = trainer.step({{"batch", 8}}).memory_plan().peak_bytes;
    }
    EXPECT_EQ(losses[0].size(), 3U);
    EXPECT_EQ(losses[0], losses[1]) << to_string(precision);
    EXPECT_TRUE(different_tensors(variables[0], variables[1]).empty()) << to_string(precision);
    EXPECT_LT(peaks[1], peaks[0]) << to_string(precision);
  }
}

// Weights that have been small stay away: their masks are states of the transform.
nn::Task tiny_masked() {
  return tiny_task("masked", [](nn::Context& context, Value* x) {
    context.transform([&context](const nn::Variable& parameter, Value* value) {
      Value* mask = context.state(parameter.name + ".mask", parameter.shape, nn::constant(1));
      Value* small = ops::constant(context.graph(), Tensor::scalar(DataType::fp32, 0.05));
      Value* large = ops::cast(ops::greater(ops::absolute(value), small), DataType::fp32);
      context.update(mask, ops::multiply(mask, large));
      return ops::multiply(value, mask);
    });
    return nn::linear(context, "fc1", nn::flatten(x), kTinyClasses);
  });
}

struct Resumption {
  std::string name;
  nn::Task task;
  TrainerOptions options;
};

std::vector<Resumption> resumptions() {
  std::vector<Resumption> cases;
  cases.push_back({"sgd", tiny_perceptron(), tiny_training()});
  cases.push_back({"resnet_with_dropout", tiny_resnet(0.3), tiny_training()});
  TrainerOptions everything = tiny_training();
  everything.optimizer = optim::adamw({.learning_rate = 0.01, .weight_decay = 0.01});
  everything.accumulate = 2;
  everything.clip_norm = 0.5;
  everything.ema_decay = 0.9;
  cases.push_back({"everything", tiny_resnet(0.3), everything});
  TrainerOptions half = everything;
  half.precision = Precision::fp16;
  half.optimizer = optim::lamb({.learning_rate = 0.01});
  cases.push_back({"everything_in_fp16", tiny_perceptron(0.3), half});
  everything.gradient_delay = 1;
  half.gradient_delay = 1;
  cases.push_back({"everything_delayed", tiny_resnet(0.3), everything});
  cases.push_back({"everything_delayed_in_fp16", tiny_perceptron(0.3), half});
  cases.push_back({"augmented", tiny_augmented(), tiny_training()});
  cases.push_back({"transformed_parameters", tiny_masked(), tiny_training()});
  return cases;
}

class Resuming : public ::testing::TestWithParam<Resumption> {
 protected:
  // A schedule that differs from step to step, and random augmentation.
  static FitOptions fit_options() {
    FitOptions options{.epochs = 3};
    options.schedule = [](int64_t total, int64_t) { return optim::one_cycle(total); };
    return options;
  }
  static data::Loader loader() {
    // Five batches and a rest.
    return {
        tiny_dataset(44), tiny_loading(8), {.augmentation = {.crop_padding = 1, .horizontal_flip = true}}};
  }
  Trainer make(uint64_t seed = 1) const {
    TrainerOptions options = GetParam().options;
    options.seed = seed;
    return Trainer(GetParam().task, options);
  }
  Checkpoint straight() const {
    Trainer trainer = make();
    trainer.fit(loader(), fit_options());
    return trainer.training_state();
  }
  // Goes on in a new trainer, whose own seed must not matter.
  void expect_resumes(const FitOptions& first, const Checkpoint& expected, const std::string& where) const {
    const TemporaryFolder folder;
    FitOptions stopped = first;
    stopped.checkpoints = folder.path();
    {
      Trainer trainer = make();
      EXPECT_FALSE(trainer.fit(loader(), stopped).completed) << where;
    }
    Trainer trainer = make(99);
    const auto file = folder / "last.safetensors";
    trainer.restore(load_checkpoint(file), file.string());
    EXPECT_TRUE(trainer.fit(loader(), fit_options()).completed) << where;
    const Checkpoint state = trainer.training_state();
    EXPECT_EQ(different_tensors(state.tensors, expected.tensors), std::vector<std::string>{}) << where;
    for (const char* key : {"epoch", "batch", "step"}) {
      EXPECT_EQ(state.metadata.at(key), expected.metadata.at(key)) << where;
    }
  }
};

TEST_P(Resuming, AfterAnyStepGivesTheSameBits) {
  const Checkpoint expected = straight();
  const int64_t steps = std::stoll(expected.metadata.at("step"));
  for (int64_t step = 1; step < steps; ++step) {  // epoch ends among them
    FitOptions options = fit_options();
    options.max_steps = step;
    expect_resumes(options, expected, "stopped after step " + std::to_string(step));
  }
}

TEST_P(Resuming, AfterASignalInsideAnAccumulationGivesTheSameBits) {
  const Checkpoint expected = straight();
  std::atomic<bool> stop{false};
  FitOptions options = fit_options();
  options.stop = &stop;
  options.on_step = [&](const train::StepEvent& event) {
    if (event.position.epoch == 1 && event.position.batch == 3) stop = true;
  };
  expect_resumes(options, expected, "stopped in epoch 1 after batch 3");
}

INSTANTIATE_TEST_SUITE_P(Trainer, Resuming, ::testing::ValuesIn(resumptions()),
                         [](const auto& test) { return test.param.name; });

TEST(Trainer, SaysHowFarItCameAndKeepsTheBestWeights) {
  const TemporaryFolder folder;
  const data::Loader evaluation = tiny_evaluation();
  Trainer trainer(tiny_perceptron(), tiny_training());
  const FitResult result = trainer.fit(tiny_loader(), {.epochs = 4,
                                                       .evaluations = {evaluation_by(evaluation)},
                                                       .checkpoints = folder.path(),
                                                       .max_steps = 9});
  EXPECT_FALSE(result.completed);
  EXPECT_EQ(result.position.epoch, 1);
  EXPECT_EQ(result.position.batch, 3);
  EXPECT_EQ(result.position.step, 9);
  EXPECT_EQ(result.history.epochs.size(), 1U);
  Trainer best(tiny_perceptron(), tiny_training());
  best.load_weights(folder / "best.safetensors");
  EXPECT_DOUBLE_EQ(results_on(evaluation, best).at("accuracy"),
                   result.history.evaluations[0].results.at("accuracy"));
}

// Trains until it throws; the state before the step that threw must be the state after.
void expect_fails_unchanged(Trainer& trainer, const data::Source& source, const FitOptions& given,
                            std::initializer_list<std::string> words) {
  std::map<std::string, Tensor> before = trainer.training_state().tensors;
  FitOptions options = given;
  options.on_step = [&](const train::StepEvent&) { before = trainer.training_state().tensors; };
  EXPECT_TRUE(throws_error([&] { trainer.fit(source, options); }, ErrorCode::not_finite, words));
  EXPECT_EQ(different_tensors(trainer.training_state().tensors, before), std::vector<std::string>{});
}

// The loss of the last step is finite, its update is not: at the end of an epoch, and where a run is stopped.
TEST(Trainer, FindsWeightsThatAreNotFiniteBeforeTheyAreSaved) {
  const TemporaryFolder folder;
  FitOptions options{.epochs = 2, .checkpoints = folder.path()};
  for (const int64_t steps : {0, 4}) {
    const int64_t last = steps == 0 ? 6 : steps;
    options.max_steps = steps;
    options.schedule = [last](int64_t, int64_t) {
      return optim::Schedule{.name = "infinite at last", .factor = [last](int64_t step) {
                               return step + 1 == last ? std::numeric_limits<double>::infinity() : 1.0;
                             }};
    };
    Trainer trainer(tiny_perceptron(), tiny_training());
    EXPECT_TRUE(throws_error([&] { trainer.fit(tiny_loader(), options); }, ErrorCode::not_finite,
                             {fmt::format("after step {}", last), "'fc1.weight'", "inf"}));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

// On the second, a step is under way when the one before it is found to have failed.
class NotFinite : public ::testing::TestWithParam<bool> {
 protected:
  static TrainerOptions training() {
    TrainerOptions options = tiny_training();
    if (GetParam()) options.device = std::make_shared<DetachedDevice>();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, NotFinite, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Detached" : "Fastest"; });

TEST_P(NotFinite, InputsAreNamed) {
  for (const auto& [precision, delay] : {std::pair{Precision::fp32, 0}, std::pair{Precision::fp16, 0},
                                         std::pair{Precision::fp32, 1}, std::pair{Precision::fp16, 1}}) {
    TrainerOptions options = training();
    options.precision = precision;
    options.gradient_delay = delay;
    Trainer trainer(tiny_linear_of_rows(), options);
    expect_fails_unchanged(trainer, tiny_rows(/*broken=*/true), {}, {"step 3", "nan", "images", "row 4"});
    // It can go on, with other data.
    Trainer other(tiny_linear_of_rows(), options);
    other.fit(tiny_rows(), {.max_steps = 2});
    EXPECT_EQ(different_tensors(trainer.training_state().tensors, other.training_state().tensors),
              std::vector<std::string>{});
    for (Trainer* each : {&trainer, &other}) each->fit(tiny_rows(), {});
    EXPECT_EQ(different_tensors(trainer.training_state().tensors, other.training_state().tensors),
              std::vector<std::string>{});
  }
}

TEST_P(NotFinite, TheFirstNodeIsNamed) {
  const nn::Task task = tiny_task("logarithmic", [](nn::Context& context, Value* x) {
    x = nn::linear(context, "fc1", nn::flatten(x), 8);
    x = ops::apply("log", {x}, {}, "logarithm")->output();
    return nn::linear(context, "fc2", x, kTinyClasses);
  });
  for (const int64_t accumulate : {1, 2}) {
    TrainerOptions options = training();
    options.accumulate = accumulate;
    Trainer trainer(task, options);
    expect_fails_unchanged(trainer, tiny_loader(), {}, {"step 1", "nan", "logarithm"});
  }
}

TEST_P(NotFinite, ADivergedUpdateIsNamedByItsVariable) {
  Trainer trainer(tiny_perceptron(), training());
  FitOptions options{.epochs = 2};
  options.schedule = [](int64_t, int64_t) {
    return optim::Schedule{
        "broken", [](int64_t step) { return step == 1 ? std::numeric_limits<double>::infinity() : 1.0; }};
  };
  expect_fails_unchanged(trainer, tiny_loader(), options, {"step 3", "already holds", "fc1."});
}

TEST_P(NotFinite, InfiniteGradientsStopAClippedTraining) {
  // The root's slope at zero is infinite where the loss itself is finite.
  const nn::Task task = tiny_task("rooted", [](nn::Context& context, Value* x) {
    x = nn::linear(context, "fc1", nn::flatten(x), kTinyClasses);
    x = ops::multiply(x, 0.0);
    return ops::apply("sqrt", {ops::square(x)}, {}, "root")->output();
  });
  TrainerOptions options = training();
  options.clip_norm = 1;
  Trainer trainer(task, options);
  expect_fails_unchanged(trainer, tiny_loader(), {}, {"step 1", "gradient"});
}

TEST(Trainer, RefusesAnEpochShorterThanOneUpdate) {
  TrainerOptions options = tiny_training();
  options.accumulate = 7;
  Trainer trainer(tiny_perceptron(), options);
  EXPECT_ERROR(trainer.fit(tiny_loader(), {}), ErrorCode::invalid_argument, "6 batches", "7");
}

}  // namespace
}  // namespace tessera::testing
