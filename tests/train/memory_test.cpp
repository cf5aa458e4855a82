// What a trainer keeps on its device.
#include <gtest/gtest.h>

#include "tessera/train/trainer.h"

#include "support/counting_device.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

struct Use {
  int64_t peak_bytes = 0;   // of all the training
  int64_t arena_bytes = 0;  // of the step that updates
};

Use train(int64_t accumulate, bool evaluates) {
  const auto device = std::make_shared<CountingDevice>();
  train::Trainer trainer(tiny_resnet(0.1), {.device = device, .accumulate = accumulate});
  const data::Loader loader = tiny_loader();
  const data::Loader evaluation = tiny_evaluation();
  train::FitOptions fit{.epochs = 1};
  if (evaluates) fit.evaluations = {evaluation_by(evaluation)};
  trainer.fit(loader, fit);
  return {.peak_bytes = *device->peak_bytes(),
          .arena_bytes = trainer.step(loader.sizes().front()).memory_plan().peak_bytes};
}

TEST(TrainingMemory, HasOneArenaForStepsThatAccumulateAndForEvaluation) {
  const Use alone = train(1, false);
  const Use all = train(2, true);
  // What is accumulated, and the batches, are small beside the arena.
  EXPECT_GT(alone.arena_bytes, alone.peak_bytes / 2);
  EXPECT_LT(all.peak_bytes - alone.peak_bytes, alone.arena_bytes / 2);
}

}  // namespace
}  // namespace tessera::testing
