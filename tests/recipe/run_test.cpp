// The parts of a run, as a recipe asks for them.
#include "tessera/recipe/run.h"

#include <gtest/gtest.h>

#include "tessera/data/loader.h"

#include "support/expect_error.h"

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

}  // namespace
}  // namespace tessera::recipe
