// Variables that training leaves as they are.
#include <gtest/gtest.h>

#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using train::Trainer;
using train::TrainerOptions;

// Two convolutions with batch norms and a linear layer; what is frozen may lie between what is trained.
nn::Task two_blocks() {
  return tiny_task("blocks", [](nn::Context& context, Value* x) -> Value* {
    for (const char* name : {"first", "second"}) {
      const auto scope = context.scope(name);
      x = ops::relu(
          nn::batch_norm(context, "norm", nn::convolution(context, "conv", x, 4, 3, {.padding = 1})));
    }
    return nn::linear(context, "fc", nn::flatten(x), kTinyClasses);
  });
}

TrainerOptions freezing(std::vector<std::string> prefixes) {
  return {.optimizer = optim::adam({.learning_rate = 0.01, .weight_decay = 0.1}),
          .device = Device::cpu(),
          .ema_decay = 0.5,
          .freeze = std::move(prefixes)};
}

bool is_of(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) || name.starts_with("ema/" + prefix);
}

TEST(Freezing, WhatIsFrozenKeepsItsBitsAndTheRestTrains) {
  for (const std::string frozen : {"first.", "second."}) {
    Trainer trainer(two_blocks(), freezing({frozen}));
    const auto before = trainer.training_state().tensors;
    const train::RunHistory history = trainer.fit(tiny_loader(), {.epochs = 4}).history;
    const auto after = trainer.training_state().tensors;
    EXPECT_LT(history.epochs.back().measures.at("loss"), history.epochs.front().measures.at("loss"));
    const std::vector<std::string> changed = different_tensors(before, after);
    for (const auto& [name, tensor] : after) {
      const bool trains = !is_of(name, frozen);
      EXPECT_EQ(std::find(changed.begin(), changed.end(), name) != changed.end(), trains) << name;
      // Neither moments nor averages.
      if (!trains) {
        EXPECT_EQ(name.find('/'), std::string::npos) << name;
      }
    }
    EXPECT_TRUE(after.contains("fc.weight/first_moment"));
    EXPECT_TRUE(after.contains(frozen + "norm.running_mean"));
    // What is served and left are the frozen weights.
    EXPECT_TRUE(
        trainer.checkpoint().tensors.at(frozen + "conv.weight").identical(before.at(frozen + "conv.weight")));
  }
}

// With running statistics of the weights' own training, a frozen network trains as it is evaluated.
TEST(Freezing, BatchNormTakesItsRunningStatistics) {
  Trainer pretrained(two_blocks(), freezing({}));
  pretrained.fit(tiny_loader(), {.epochs = 3});
  const TemporaryFolder folder;
  save(pretrained.checkpoint(), folder / "weights.safetensors");
  TrainerOptions options = freezing({"first.", "second."});
  options.optimizer = optim::sgd({.learning_rate = 0});
  Trainer tuned(two_blocks(), options);
  tuned.load_weights(folder / "weights.safetensors");
  data::BatchOptions loading = tiny_loading();
  loading.shuffle = false;
  const data::Loader loader(tiny_dataset(), loading);
  const train::FitResult result = tuned.fit(loader, {.evaluations = {evaluation_by(loader)}});
  // Losses of about one are rounded to fp32 by some twenty nodes, and added in another order.
  EXPECT_NEAR(result.history.evaluations.back().results.at("loss"),
              result.history.epochs.back().measures.at("loss"), 20 * 0x1p-24);
}

TEST(Freezing, ResumesToTheSameBits) {
  expect_same_bits_when_resumed([] { return Trainer(two_blocks(), freezing({"first."})); }, tiny_loader(), 5);
}

TEST(Freezing, WhatThereIsNotIsRefused) {
  EXPECT_ERROR(Trainer(two_blocks(), freezing({"first.", "third."})), ErrorCode::invalid_argument,
               "'third.'");
  EXPECT_ERROR(Trainer(two_blocks(), freezing({"first.", "second.", "fc."})).fit(tiny_loader(), {}),
               ErrorCode::invalid_argument, "no parameter is trained");
}

}  // namespace
}  // namespace tessera::testing
