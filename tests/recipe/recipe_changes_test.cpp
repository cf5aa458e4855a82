// What a resumed run may have otherwise than when it was begun.
#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/recipe/recipe.h"

#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::recipe {
namespace {

Recipe recipe_with(const std::vector<std::string>& overrides) {
  return parse_recipe("data.kind = 'synthetic'\noptimizer.name = 'sgd'\nschedule.name = 'cosine'", "recipe",
                      overrides);
}

std::vector<std::string> changed(const std::vector<std::string>& overrides,
                                 const std::set<std::string>& asked) {
  std::vector<std::string> lines;
  for (const train::SettingChange& change :
       changes_on_resume(recipe_with({}), recipe_with(overrides), asked, "last.safetensors")) {
    lines.push_back(change.key + ": " + change.before + " -> " + change.after);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Resuming, TheSameRecipeChangesNothing) {
  EXPECT_EQ(changed({}, {}), Lines{});
}

TEST(Resuming, WhatDoesNotDecideWhatIsComputedMayDiffer) {
  EXPECT_EQ(changed({"train.checkpoint_every=5", "train.device=cpu", "train.recompute=true"}, {}),
            (Lines{"train.device: \"auto\" -> \"cpu\"", "train.recompute: unset -> true",
                   "train.checkpoint_every: 1 -> 5"}));
}

TEST(Resuming, WhatDecidesItMustBeAskedForAndEveryKeyIsNamed) {
  const std::vector<std::string> overrides = {"train.precision=bf16", "optimizer.momentum=0.5",
                                              "train.epochs=20"};
  EXPECT_ERROR(changed(overrides, {"train.epochs"}), ErrorCode::invalid_argument,
               "last.safetensors: ", "train.precision = \"auto\" (now \"bf16\")",
               "optimizer.momentum = 0.9 (now 0.5)", "--set");
  EXPECT_EQ(changed(overrides, {"train.epochs", "train.precision", "optimizer.momentum"}),
            (Lines{"train.epochs: 10 -> 20", "train.precision: \"auto\" -> \"bf16\"",
                   "optimizer.momentum: 0.9 -> 0.5"}));
}

TEST(Resuming, ThePlaceInTheDataMustKeepItsMeaning) {
  for (const char* override_text : {"data.shuffle=false", "data.train_images=16", "train.batch=8",
                                    "train.seed=2", "train.accumulate=2"}) {
    const std::string key = std::string(override_text).substr(0, std::string(override_text).find('='));
    EXPECT_ERROR(changed({override_text}, {key}), ErrorCode::invalid_argument, "last.safetensors: ", key,
                 "cannot go on");
  }
}

TEST(Resuming, KeysWithoutEffectDoNotCount) {
  EXPECT_EQ(changed({"optimizer.beta1=0.5", "schedule.gamma=0.5"}, {}), Lines{});
}

// Its options had other defaults, of other optimizers, while they had no effect.
TEST(Resuming, WhatComesWithAChoiceNeedsNotBeAskedFor) {
  const std::vector<std::string> overrides = {"optimizer.name=adam", "optimizer.learning_rate=0.1"};
  EXPECT_EQ(changed(overrides, {"optimizer.name"}).front(), "optimizer.name: \"sgd\" -> \"adam\"");
  EXPECT_ERROR(changed(overrides, {}), ErrorCode::invalid_argument,
               "optimizer.name = \"sgd\" (now \"adam\")");
}

TEST(Resuming, OverridesNameTheirKeys) {
  EXPECT_EQ(overridden_keys({"train.epochs=3", "data.path=a=b", "train.epochs=4"}),
            (std::set<std::string>{"data.path", "train.epochs"}));
}

TEST(Resuming, DocumentationIsCurrent) {
  const std::string page =
      read_text_file(std::filesystem::path(TESSERA_TEST_FOLDER) / "../../docs/checkpoints.md");
  EXPECT_NE(page.find(resuming_reference()), std::string::npos)
      << "docs/checkpoints.md should hold this list:\n"
      << resuming_reference();
}

}  // namespace
}  // namespace tessera::recipe
