// Training on a device that works beside the host.
#include <tuple>

#include <gtest/gtest.h>

#include "tessera/train/trainer.h"

#include "support/detached_device.h"
#include "support/expect_error.h"
#include "support/late_decoding.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using train::FitOptions;
using train::FitResult;
using train::Trainer;
using train::TrainerOptions;

TrainerOptions training_on(const std::shared_ptr<Device>& device) {
  return {.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9}), .device = device};
}

// A device that works beside the host has one more step under way; nothing that is reported may differ.
TEST(DetachedTraining, ReportsTheSame) {
  struct Seen {
    std::vector<double> values;
    std::map<std::string, Tensor> tensors;
    std::vector<train::EvaluationRow> evaluations;
  };
  for (const int64_t accumulate : {1, 2}) {
    for (const Precision precision : {Precision::fp32, Precision::fp16}) {
      const auto train = [&](const std::shared_ptr<Device>& device) {
        TrainerOptions options = training_on(device);
        options.accumulate = accumulate;
        options.precision = precision;
        Trainer trainer(tiny_resnet(0.3), options);
        const data::Loader evaluation = tiny_evaluation();
        Seen seen;
        FitOptions fit{
            .epochs = 3, .evaluations = {evaluation_by(evaluation)}, .max_steps = accumulate == 1 ? 15 : 0};
        fit.schedule = [](int64_t total, int64_t) { return optim::one_cycle(total); };
        fit.on_step = [&](const train::StepEvent& event) {
          for (const double value :
               {static_cast<double>(event.position.epoch), static_cast<double>(event.position.batch),
                static_cast<double>(event.position.step), event.measures.at("loss"),
                event.measures.at("accuracy"), event.learning_rate}) {
            seen.values.push_back(value);
          }
        };
        fit.on_epoch = [&](const train::EpochRow& row, const auto& evaluations) {
          for (const double value : {row.measures.at("loss"), row.measures.at("accuracy"),
                                     evaluations.at(0).results.at("loss"), row.learning_rate})
            seen.values.push_back(value);
        };
        const FitResult result = trainer.fit(tiny_loader(), fit);
        EXPECT_EQ(result.position.step, accumulate == 1 ? 15 : 9);
        for (const train::StepSample& sample : result.history.samples)
          seen.values.push_back(sample.measures.at("accuracy"));
        seen.tensors = trainer.training_state().tensors;
        seen.evaluations = result.history.evaluations;
        return seen;
      };
      const Seen expected = train(Device::reference());
      const Seen actual = train(std::make_shared<DetachedDevice>());
      EXPECT_EQ(actual.values, expected.values);
      EXPECT_EQ(different_tensors(actual.tensors, expected.tensors), std::vector<std::string>{});
      EXPECT_EQ(actual.evaluations, expected.evaluations);
    }
  }
}

TEST(DetachedTraining, WaitsOnlyAtTheEndOfAnEpoch) {
  const auto device = std::make_shared<DetachedDevice>();
  TrainerOptions options = training_on(device);
  Trainer trainer(tiny_perceptron(), options);
  FitOptions fit{.epochs = 2};
  std::vector<int> waits;
  std::vector<int> buffers;
  fit.on_step = [&](const train::StepEvent&) {
    waits.push_back(device->waits);
    buffers.push_back(device->buffers);
  };
  trainer.fit(tiny_loader(), fit);
  ASSERT_EQ(waits.size(), 12U);
  EXPECT_EQ(waits[0], waits[5]);
  EXPECT_EQ(waits[6], waits[11]);
  EXPECT_EQ(buffers[0], buffers[11]);
}

data::Loader made_by_the_device(const std::shared_ptr<const data::Dataset>& images, bool trains) {
  data::BatchOptions options = tiny_loading();
  options.shuffle = trains;
  options.drop_last = trains;
  options.workers = 3;
  return {std::make_shared<LateDataset>(images, 5), options, {.decode = data::DecodePlace::gpu}};
}

// Most images are made on the device while steps run, and stay there; one of five is the host's.
TEST(DetachedTraining, OfImagesThatTheDeviceMakesIsTheSame) {
  const auto train = [](const std::shared_ptr<Device>& device, const data::Loader& images,
                        const data::Loader& evaluation) {
    Trainer trainer(tiny_resnet(), training_on(device));
    const FitResult result = trainer.fit(images, {.epochs = 2, .evaluations = {evaluation_by(evaluation)}});
    const Feeds served = trainer.predict(evaluation);
    return std::tuple{trainer.training_state().tensors, result.history.evaluations, served};
  };
  const auto device = std::make_shared<LateDevice>();
  const auto [expected, rows, served] = train(Device::reference(), tiny_loader(), tiny_evaluation());
  const auto [tensors, made_rows, made_served] =
      train(device, made_by_the_device(tiny_dataset(), true), made_by_the_device(tiny_dataset(45, 4), false));
  EXPECT_EQ(different_tensors(tensors, expected), std::vector<std::string>{});
  EXPECT_EQ(made_rows, rows);
  EXPECT_EQ(different_tensors(made_served, served), std::vector<std::string>{});
  // Labels and learning rates: a batch of images alone has 288 bytes.
  constexpr int64_t kBatches = 2 * 6 + 3 * 6;
  EXPECT_LE(device->bytes_from_host, kBatches * (8 * 4 + 4));
}

TEST(DetachedTraining, OfImagesThatTheDeviceMakesResumesToTheBit) {
  const data::Loader images = made_by_the_device(tiny_dataset(), true);
  for (const int64_t steps : {3, 8}) {
    expect_same_bits_when_resumed(
        [] { return Trainer(tiny_resnet(0.3), training_on(std::make_shared<LateDevice>())); }, images, steps);
  }
}

// The batch that made the first number that is none is looked at on the host.
TEST(DetachedTraining, OfImagesThatTheDeviceMakesSaysWhereTheFirstNanWasMade) {
  TrainerOptions options = training_on(std::make_shared<LateDevice>());
  options.optimizer = optim::sgd({.learning_rate = 1e30});
  Trainer trainer(tiny_resnet(), options);
  EXPECT_ERROR(trainer.fit(made_by_the_device(tiny_dataset(), true), {.epochs = 3}), ErrorCode::not_finite,
               "step");
}

}  // namespace
}  // namespace tessera::testing
