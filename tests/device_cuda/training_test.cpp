// Whole training steps on the GPU: as on the reference, and recorded as run plainly.
#include "tessera/models/formula.h"
#include "tessera/models/registry.h"
#include "tessera/train/trainer.h"

#include "device_cuda/cuda_case.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/training_step.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

constexpr int64_t kBatch = 8;
constexpr int kSteps = 4;

// The losses of consecutive steps on one batch, and the parameters after them.
struct TrainingRun {
  std::vector<double> losses;
  std::shared_ptr<Variables> variables;
};

TrainingRun train(const std::string& name, const std::shared_ptr<Device>& device, Precision precision,
                  bool record, bool recompute = false) {
  models::ClassifierOptions model_options = models::describe(name).defaults;
  model_options.classes = 10;
  const models::Model model = models::create(name, model_options);
  const train::StepGraph step =
      training_step(model, {.batch = kBatch,
                            .optimizer = optim::sgd({.learning_rate = 0.05, .momentum = 0.9}),
                            .precision = precision});
  CompileOptions options;
  options.passes.precision = precision;
  options.passes.recompute = recompute;
  options.poison_freed = !record;  // which keeps runs from being recorded
  const auto executable = compile(*step.graph, device, options);
  TrainingRun result{{}, std::make_shared<Variables>(device)};
  train::initialize_variables(*result.variables, step.variables, 1);
  executable->bind(result.variables);
  const std::map<std::string, Tensor> inputs{
      {"images", models::formula::images("images", model.input_type(kBatch).static_shape())},
      {"labels", models::formula::labels("labels", kBatch, 10)},
      {"learning_rate", Tensor::scalar(DataType::fp32, 0.05)}};
  for (int i = 0; i < kSteps; ++i) result.losses.push_back(loss_of(executable->run(inputs)));
  return result;
}

TEST(CudaTraining, OfLenetIsTheReferences) {
  TESSERA_NEEDS_GPU();
  const TrainingRun expected = train("lenet", Device::reference(), Precision::fp32, false);
  const TrainingRun actual = train("lenet", gpu_or_null(), Precision::fp32, true);
  // Losses of about 2, rounded some hundreds of times to fp32 (2^-24 each) over the steps before.
  for (int i = 0; i < kSteps; ++i) EXPECT_NEAR(actual.losses[i], expected.losses[i], 1e-4) << "step " << i;
}

TEST(CudaTraining, GivesTheSameBitsRecordedOrNot) {
  TESSERA_NEEDS_GPU();
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    const TrainingRun plain = train("lenet", gpu_or_null(), precision, false);
    const TrainingRun recorded = train("lenet", gpu_or_null(), precision, true);
    EXPECT_EQ(plain.losses, recorded.losses) << to_string(precision);
    for (const std::string& name : plain.variables->names()) {
      EXPECT_TRUE(plain.variables->get(name).identical(recorded.variables->get(name))) << name;
    }
  }
}

TEST(CudaTraining, InLowPrecisionStaysNearFp32) {
  TESSERA_NEEDS_GPU();
  const TrainingRun expected = train("lenet", gpu_or_null(), Precision::fp32, true);
  for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16}) {
    const TrainingRun actual = train("lenet", gpu_or_null(), precision, true);
    for (int i = 0; i < kSteps; ++i) {
      // bf16 rounds by 2^-8 of losses of about 2, at some layers and steps: six of these.
      EXPECT_NEAR(actual.losses[i], expected.losses[i], 0.05) << to_string(precision) << " step " << i;
    }
  }
}

TEST(CudaTraining, RecomputesActivationsWithoutAnotherResult) {
  TESSERA_NEEDS_GPU();
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    const TrainingRun kept = train("resnet_small", gpu_or_null(), precision, true);
    const TrainingRun again = train("resnet_small", gpu_or_null(), precision, true, /*recompute=*/true);
    EXPECT_EQ(kept.losses, again.losses) << to_string(precision);
    for (const std::string& name : kept.variables->names()) {
      EXPECT_TRUE(kept.variables->get(name).identical(again.variables->get(name))) << name;
    }
  }
}

TEST(CudaTraining, IsInTf32UnlessAPrecisionIsNamed) {
  TESSERA_NEEDS_GPU();
  const models::Model model = models::create("lenet");
  const nn::Task task = tasks::image_classification(model);
  const train::Trainer trainer(task, {.device = gpu_or_null()});
  EXPECT_EQ(trainer.precision(), tf32_allowed() ? Precision::tf32 : Precision::fp32);
  const train::Trainer exact(task, {.precision = Precision::fp32, .device = gpu_or_null()});
  EXPECT_EQ(exact.precision(), Precision::fp32);
}

train::TrainerOptions on_gpu() {
  return {.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9}), .device = gpu_or_null()};
}

// One step is under way while the loss of the one before it is read.
TEST(CudaTrainer, ReportsEachStepAndStopsWhereItIsTold) {
  TESSERA_NEEDS_GPU();
  const auto run = [](int64_t max_steps) {
    train::Trainer trainer(tiny_resnet(0.3), on_gpu());
    std::vector<double> losses;
    const auto fit = [&](int64_t steps) {
      train::FitOptions options{.epochs = 3, .max_steps = steps};
      options.on_step = [&](const train::StepEvent& event) {
        losses.push_back(event.measures.at("loss"));
        EXPECT_EQ(event.position.step, static_cast<int64_t>(losses.size()));
      };
      trainer.fit(tiny_loader(), options);
    };
    if (max_steps > 0) fit(max_steps);
    fit(0);
    return std::pair{losses, trainer.training_state().tensors};
  };
  const auto [losses, state] = run(0);
  ASSERT_EQ(losses.size(), 18U);
  EXPECT_LT(losses.back(), losses.front());
  for (const int64_t stop : {1, 8}) {
    const auto [others, other_state] = run(stop);
    EXPECT_EQ(others, losses) << stop;
    EXPECT_EQ(different_tensors(other_state, state), std::vector<std::string>{}) << stop;
  }
}

TEST(CudaTrainer, AFailedStepKeepsTheNextFromChangingAnything) {
  TESSERA_NEEDS_GPU();
  train::Trainer sound(tiny_linear_of_rows(), on_gpu());
  sound.fit(tiny_rows(), {.max_steps = 2});
  train::Trainer broken(tiny_linear_of_rows(), on_gpu());
  EXPECT_ERROR(broken.fit(tiny_rows(/*broken=*/true), {}), ErrorCode::not_finite, "step 3", "images");
  EXPECT_EQ(different_tensors(broken.training_state().tensors, sound.training_state().tensors),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace tessera::testing
