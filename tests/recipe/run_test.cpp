// The parts of a run, as a recipe asks for them.
#include "tessera/recipe/run.h"

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/data/loader.h"
#include "tessera/train/checkpoint.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "test_folder.h"

namespace tessera::recipe {
namespace {

Recipe recipe_with(const std::vector<std::string>& overrides) {
  return parse_recipe("train.device = 'cpu'\ndata.kind = 'synthetic'", "recipe", overrides);
}

TEST(RunParts, TheProcessorHasTheThreadsOfTheRecipe) {
  for (const int64_t threads : {1, 3}) {
    const train::TrainerOptions options =
        make_trainer_options(recipe_with({"train.threads=" + std::to_string(threads)}));
    EXPECT_TRUE(options.device->description().model.ends_with(", " + std::to_string(threads) + " threads"))
        << options.device->description().model;
  }
  for (const char* name : {"cpu:threads=0", "cpu:threads=", "cpu:threads=4x", "cpu:4", "cpu:thr"}) {
    EXPECT_ERROR(Device::open(name), ErrorCode::invalid_argument, name, "cpu:threads=N");
  }
}

TEST(RunParts, WhatARecipeFreezesStays) {
  EXPECT_TRUE(make_trainer_options(recipe_with({})).freeze.empty());
  const train::TrainerOptions options =
      make_trainer_options(recipe_with({"train.freeze=['conv1.', 'bn1.']"}));
  EXPECT_EQ(options.freeze, (std::vector<std::string>{"conv1.", "bn1."}));
}

TEST(RunParts, FashionMnistIsKnownByItsLabels) {
  const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  Recipe recipe = recipe_with({"data.kind=idx", "data.path=" + folder.string(), "data.test_images=10"});
  const train::Workload workload = make_workload(recipe);
  for (const auto& source : {workload.training(), workload.test().source}) {
    EXPECT_EQ(dynamic_cast<const data::Loader&>(*source).dataset().class_names(),
              data::fashion_mnist_class_names());
  }
}

TEST(RunParts, WithoutPrefetchEachBatchIsMadeInItsTurn) {
  const auto source = make_workload(recipe_with({"data.prefetch=0"})).training();
  EXPECT_EQ(dynamic_cast<const data::Loader&>(*source).options().workers, 0);
  EXPECT_TRUE(source->open({})->next().has_value());
}

// What a state holds beside the weights, by the names that docs/checkpoints.md explains.
TEST(RunFolder, ThePageOfCheckpointsNamesWhatIsInOne) {
  const std::string page =
      read_text_file(std::filesystem::path(TESSERA_TEST_FOLDER) / "../../docs/checkpoints.md");
  const auto names = [&](const std::string& name) {
    return page.find("`" + name + "`") != std::string::npos;
  };
  const testing::TemporaryFolder folder;
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"train.accumulate=2", "train.ema_decay=0.9", "optimizer.name=adam"},
        {"train.gradient_delay=1", "train.precision=fp16"}}) {
    std::vector<std::string> all{"model.name=mlp",    "model.hidden=[4]",     "model.dropout=0.5",
                                 "data.image_size=4", "data.train_images=16", "data.test_images=4",
                                 "train.batch=4",     "train.epochs=1"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const std::filesystem::path run = folder / std::to_string(overrides.size());
    run_recipe(recipe_with(all), {.folder = run, .quiet = true});
    const Checkpoint state = load_checkpoint(run / "checkpoints" / "last.safetensors");
    for (const auto& [key, value] : state.metadata) EXPECT_TRUE(names(key)) << key;
    EXPECT_TRUE(state.metadata.contains("best"));
    const Checkpoint weights = load_checkpoint(run / "model.safetensors");
    for (const auto& [name, tensor] : state.tensors) {
      if (weights.tensors.contains(name)) continue;
      const size_t slash = name.rfind('/');
      const bool of_average = name.starts_with("ema/");
      const std::string shown = of_average                   ? "ema/NAME"
                                : slash != std::string::npos ? "NAME" + name.substr(slash)
                                                             : name;
      EXPECT_TRUE(names(shown)) << name;
    }
  }
}

}  // namespace
}  // namespace tessera::recipe
