// Batches that fit the training data, and runs with them.
#include "recipe/fitted_batch.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tessera/recipe/run.h"
#include "tessera/train/checkpoint.h"

#include "support/expect_error.h"
#include "support/ranks.h"
#include "support/temporary_folder.h"

namespace tessera::recipe {
namespace {

using testing::on_ranks;

TEST(FittedBatch, LeavesFewSamplesOut) {
  struct Case {
    int64_t samples, most, accumulate, ranks, batch, steps, left_out;
  };
  for (const Case& one : {
           Case{60000, 256, 1, 1, 255, 235, 75},         // 256 leaves 96 out
           Case{1281167, 272, 12, 1, 272, 392, 1679},    // 271 would leave 3131 out
           Case{1281167, 65536, 1, 8, 64000, 20, 1167},  // 8 x 8000, for 8 x 8007 are no multiples of 8
           Case{1000, 66, 1, 4, 60, 16, 40},             // 1000 / 16 is 62, which four cannot share
           Case{1000, 64, 1, 4, 64, 15, 40},             // as many as 60 leaves out
           Case{40, 16, 1, 1, 13, 3, 1}, Case{40, 100, 1, 1, 40, 1, 0},  // one update takes all
           Case{40, 100, 3, 1, 13, 1, 1},                                // of three batches
           Case{40, 15, 1, 2, 12, 3, 4},                                 // 15 cannot be shared
           Case{4096, 512, 2, 4, 512, 4, 0}                              // fits as it is
       }) {
    const FittedBatch fitted = fit_batch(one.samples, one.most, one.accumulate, one.ranks);
    EXPECT_EQ(fitted.batch, one.batch) << one.samples << " in at most " << one.most;
    EXPECT_EQ(fitted.steps, one.steps) << one.samples << " in at most " << one.most;
    EXPECT_EQ(fitted.left_out, one.left_out) << one.samples << " in at most " << one.most;
  }
  EXPECT_EQ(describe(fit_batch(40, 16, 1, 1), 16, "images"),
            "batch 16 -> 13: 3 updates in an epoch, 1 images of which are left out");
}

TEST(FittedBatch, IsOneThatRanksShareAndNoWorseThanTheLargest) {
  for (int64_t samples = 1; samples < 400; ++samples) {
    for (const int64_t ranks : {1, 2, 3, 8}) {
      for (const int64_t accumulate : {1, 3}) {
        const int64_t most = 48;
        if (samples < ranks * accumulate) {
          EXPECT_ERROR(fit_batch(samples, most, accumulate, ranks), ErrorCode::invalid_argument,
                       std::to_string(samples));
          continue;
        }
        const FittedBatch fitted = fit_batch(samples, most, accumulate, ranks);
        EXPECT_GT(fitted.batch, 0);
        EXPECT_LE(fitted.batch, most);
        EXPECT_EQ(fitted.batch % ranks, 0);
        EXPECT_GE(fitted.steps, 1);
        EXPECT_EQ(fitted.steps * fitted.batch * accumulate + fitted.left_out, samples);
        EXPECT_LE(fitted.left_out, samples % (most * accumulate));
      }
    }
  }
}

constexpr const char* kText = R"(
[model]
name = "mlp"
hidden = [4]
dropout = 0.5

[data]
kind = "synthetic"
image_size = 4
train_images = 40
test_images = 4

[train]
device = "cpu"
batch = 16
fit_batch = true
epochs = 2
)";

Recipe parse(const std::vector<std::string>& overrides = {}, const std::string& more = "") {
  return parse_recipe(kText + more, "recipe", overrides);
}

Checkpoint last_of(const std::filesystem::path& folder) {
  return load_checkpoint(folder / "checkpoints" / "last.safetensors");
}

void expect_same(const Checkpoint& one, const Checkpoint& other) {
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (const auto& [name, tensor] : one.tensors)
    EXPECT_TRUE(other.tensors.at(name).identical(tensor)) << name;
}

TEST(RunOfFittedBatches, TrainsAsOneWhoseRecipeSaysThatBatch) {
  const testing::TemporaryFolder folder;
  const RunResult fitted = run_recipe(parse(), {.folder = folder / "fitted", .quiet = true});
  EXPECT_EQ(fitted.fit.position.step, 6);
  EXPECT_EQ(last_of(folder / "fitted").metadata.at("fitted_batch"), "13");
  run_recipe(parse({"train.fit_batch=false", "train.batch=13"}), {.folder = folder / "said", .quiet = true});
  EXPECT_FALSE(last_of(folder / "said").metadata.contains("fitted_batch"));
  expect_same(last_of(folder / "fitted"), last_of(folder / "said"));
}

TEST(RunOfFittedBatches, GoesOnWithItsBatchOnAnyNumberOfRanks) {
  const testing::TemporaryFolder folder;
  const auto run = [&](int64_t ranks, const std::string& name, bool resume, int64_t most_steps) {
    on_ranks(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
      run_recipe(parse(), {.folder = folder / name,
                           .resume = resume,
                           .max_steps = most_steps,
                           .quiet = true,
                           .communicator = communicator});
    });
  };
  run(2, "run", false, 2);
  EXPECT_EQ(last_of(folder / "run").metadata.at("fitted_batch"), "12");
  EXPECT_ERROR(run(5, "run", true, 0), ErrorCode::invalid_argument,
               "5 ranks cannot share a batch of 12 evenly");
  run_recipe(parse(), {.folder = folder / "run", .resume = true, .max_steps = 3, .quiet = true});
  run(2, "run", true, 0);
  EXPECT_EQ(last_of(folder / "run").metadata.at("fitted_batch"), "12");
  EXPECT_EQ(last_of(folder / "run").metadata.at("step"), "6");
  run(2, "straight", false, 0);
  run(2, "again", false, 4);
  run(2, "again", true, 0);
  expect_same(last_of(folder / "again"), last_of(folder / "straight"));
}

TEST(RunOfFittedBatches, FitsThatOfEachStage) {
  const testing::TemporaryFolder folder;
  const std::string stages =
      "\n[[stages]]\n\n[[stages]]\ndata.train_images = 30\ntrain.batch = 20\n\n[[stages]]\ntrain.fit_batch = "
      "false\n";
  const auto batches = [&](int64_t steps) {
    run_recipe(parse({}, stages),
               {.folder = folder / "run", .resume = steps > 1, .max_steps = steps, .quiet = true});
    const auto metadata = last_of(folder / "run").metadata;
    const auto found = metadata.find("fitted_batch");
    return found == metadata.end() ? "none" : found->second;
  };
  EXPECT_EQ(batches(1), "13");
  EXPECT_EQ(batches(5), "13");
  EXPECT_EQ(batches(7),
            "15");  // the first of the second stage: 30 images in two batches, not 10 left out by one of 20
  EXPECT_EQ(batches(9), "15");
  EXPECT_EQ(batches(11), "none");
}

TEST(RunOfFittedBatches, IsRefusedWhereNoBatchFits) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "text") << std::string(4000, 'a');
  const Recipe of_text =
      parse_recipe("task.name = 'transformer_xl'\ntrain.device = 'cpu'\ntrain.fit_batch = true", "recipe",
                   {"data.path=" + (folder / "text").string()});
  EXPECT_ERROR(run_recipe(of_text, {.folder = folder / "run", .quiet = true}), ErrorCode::invalid_argument,
               "train.fit_batch: no batch fits this training data", "one long text");
  EXPECT_ERROR(run_recipe(parse({"train.accumulate=41"}), {.folder = folder / "run", .quiet = true}),
               ErrorCode::invalid_argument, "40 samples in updates of 41 batches");
  EXPECT_ERROR(changes_on_resume(parse({"train.fit_batch=false"}), parse(), {"train.fit_batch"}, "last"),
               ErrorCode::invalid_argument, "train.fit_batch = false (now true)", "cannot go on");
}

}  // namespace
}  // namespace tessera::recipe
