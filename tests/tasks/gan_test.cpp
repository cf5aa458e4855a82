#include "tessera/tasks/gan.h"

#include <gtest/gtest.h>

#include "tessera/data/loader.h"
#include "tessera/train/trainer.h"

#include "train/tiny.h"

namespace tessera::testing {
namespace {

// Bright squares in dark pictures, at one of two places.
std::shared_ptr<const data::Dataset> squares(int64_t count) {
  Tensor images(DataType::uint8, {count, 8, 8});
  for (int64_t n = 0; n < count; ++n) {
    const int64_t corner = n % 2 == 0 ? 1 : 4;
    for (int64_t y = 0; y < 3; ++y) {
      for (int64_t x = 0; x < 3; ++x) images.set((n * 8 + corner + y) * 8 + corner + x, 255);
    }
  }
  return std::make_shared<data::ClassificationDataset>(images, Tensor(DataType::uint8, {count}));
}

data::Loader loader(int64_t count, bool shuffle) {
  return {squares(count), {.batch_size = 16, .shuffle = shuffle, .drop_last = shuffle}};
}

train::TrainerOptions small_training() {
  return {.phases = tasks::gan_phases(optim::adam({.learning_rate = 2e-3, .beta1 = 0.5})),
          .device = Device::cpu()};
}

nn::Task small_gan() {
  return tasks::gan({.image_size = 8, .noise = 8, .width = 8});
}

TEST(Gan, LearnsWhereTheLightIs) {
  const data::Loader held_out = loader(40, false);
  train::Trainer trainer(small_gan(), small_training());
  const auto measure = [&] {
    const auto evaluator = tasks::gan_evaluator()();
    EXPECT_EQ(trainer.evaluate(held_out, *evaluator), 40);
    return std::pair{evaluator->results(), evaluator->sections()};
  };
  const train::Numbers before = measure().first;
  const train::FitResult result = trainer.fit(loader(256, true), {.epochs = 12});
  const auto [after, sections] = measure();
  // Gray at first: half a unit from most pixels.
  EXPECT_GT(before.at("mean_distance"), 0.3);
  EXPECT_LT(after.at("mean_distance"), 0.12);
  EXPECT_GT(after.at("spread"), 0.3);
  ASSERT_EQ(sections.size(), 1U);
  EXPECT_NE(sections[0].html.find("data:image/png;base64,"), std::string::npos);
  for (const char* objective : {"discriminator", "generator"})
    EXPECT_TRUE(result.history.epochs.back().measures.contains(objective)) << objective;
}

TEST(Gan, ResumesToTheSameBits) {
  expect_same_bits_when_resumed([] { return train::Trainer(small_gan(), small_training()); },
                                loader(64, true), 3);
}

// What is exported makes pictures: the discriminator is not in it.
TEST(Gan, TheGeneratorIsWhatIsServed) {
  const train::Trainer trainer(small_gan(), small_training());
  for (const auto& [name, tensor] : trainer.checkpoint().tensors)
    EXPECT_TRUE(name.starts_with("generator.") || name == "random_counter") << name;
  EXPECT_GT(trainer.parameter_count(), 0);
}

}  // namespace
}  // namespace tessera::testing
