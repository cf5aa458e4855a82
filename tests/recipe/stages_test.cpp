// Recipes of runs in stages, and such runs.
#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/recipe/run.h"
#include "tessera/train/checkpoint.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::recipe {
namespace {

constexpr const char* kText = R"(
[model]
name = "mlp"
hidden = [4]
dropout = 0.5

[data]
kind = "synthetic"
image_size = 4
train_images = 16
test_images = 4

[train]
device = "cpu"
batch = 4
epochs = 2

[[stages]]
optimizer.learning_rate = 0.5

[[stages]]
train.batch = 8
train.accumulate = 2
train.steps = 3
schedule.name = "polynomial"
schedule.warmup_steps = 2
data.train_images = 40
)";

Recipe parse(const std::vector<std::string>& overrides = {}, const std::string& more = "") {
  return parse_recipe(kText + more, "recipe", overrides);
}

std::string refusal(const std::vector<std::string>& overrides, const std::string& more = "") {
  try {
    parse(overrides, more);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RecipeOfStages, HasTheValuesOfEach) {
  const Recipe recipe = parse();
  ASSERT_EQ(recipe.stage_count(), 2);
  const Recipe first = recipe.at_stage(0);
  const Recipe second = recipe.at_stage(1);
  EXPECT_EQ(first.values.real("optimizer.learning_rate"), 0.5);
  EXPECT_EQ(second.values.real("optimizer.learning_rate"), 0.1);
  EXPECT_EQ(first.values.integer("train.batch"), 4);
  EXPECT_EQ(second.values.integer("train.batch"), 8);
  EXPECT_EQ(second.values.integer("train.epochs"), 2);
  // Defaults that go with a stage's own choice.
  EXPECT_EQ(second.values.real("schedule.power"), 2);
  EXPECT_EQ(first.stage_count(), 1);
  EXPECT_EQ(first.at_stage(0), first);
}

TEST(RecipeOfStages, IsPrintedWithWhatStagesHaveOtherwise) {
  const Recipe recipe = parse();
  const std::string text = to_toml(recipe);
  EXPECT_TRUE(
      text.ends_with("\n[[stages]]\noptimizer.learning_rate = 0.5\n"
                     "\n[[stages]]\ndata.train_images = 40\ntrain.steps = 3\ntrain.batch = 8\n"
                     "train.accumulate = 2\nschedule.name = \"polynomial\"\nschedule.warmup_steps = 2\n"))
      << text;
  EXPECT_EQ(parse_recipe(text, "printed"), recipe);
}

TEST(RecipeOfStages, IsChangedAsAWholeOrInOneStage) {
  const Recipe all = parse({"train.batch=2", "optimizer.learning_rate=0.25"});
  EXPECT_EQ(all.at_stage(0).values.real("optimizer.learning_rate"), 0.25);
  EXPECT_EQ(all.at_stage(1).values.integer("train.batch"), 2);
  const Recipe one = parse({"train.batch=2", "stages.2.train.batch=16", "stages.1.train.epochs=7"});
  EXPECT_EQ(one.at_stage(0).values.integer("train.batch"), 2);
  EXPECT_EQ(one.at_stage(1).values.integer("train.batch"), 16);
  EXPECT_EQ(one.at_stage(0).values.integer("train.epochs"), 7);
  EXPECT_EQ(one.at_stage(1).values.integer("train.epochs"), 2);
}

TEST(RecipeOfStages, RefusesWhatCannotBe) {
  EXPECT_EQ(refusal({}, "model.hidden = [8]"),
            "recipe:28: 'model.hidden' is the same in all stages of a run");
  EXPECT_EQ(refusal({"stages.2.optimizer.name=adam"}),
            "--set stages.2.optimizer.name=adam: 'optimizer.name' is the same in all stages of a run");
  EXPECT_EQ(refusal({"stages.3.train.epochs=1"}), "--set stages.3.train.epochs=1: the recipe has 2 stages");
  EXPECT_EQ(refusal({"stages.1.train.epoch=1"}),
            "--set stages.1.train.epoch=1: unknown key 'train.epoch', did you mean 'epochs'?");
  EXPECT_EQ(refusal({}, "train.clip_norm = -1"), "recipe:28: 'train.clip_norm' must be at least 0, not -1");
  // It has a warm-up in steps as well.
  EXPECT_EQ(refusal({}, "schedule.warmup_epochs = 1.0").substr(0, 10), "recipe:26:");
  EXPECT_ERROR(parse_recipe("[stages]\ntrain.batch = 4", "recipe"), ErrorCode::invalid_argument,
               "recipe:1: 'stages' must be tables, each written [[stages]]");
  EXPECT_ERROR(parse_recipe("stages = 2", "recipe"), ErrorCode::invalid_argument, "[[stages]]");
}

// A key of the whole recipe may serve one stage alone.
TEST(RecipeOfStages, WarnsOfWhatNoStageReads) {
  std::vector<std::string> warnings;
  parse_recipe(std::string(kText) + "\n[schedule]\npower = 1.0\n", "recipe", {}, &warnings);
  EXPECT_EQ(warnings, std::vector<std::string>{});
  parse_recipe(std::string(kText) + "\n[schedule]\ngamma = 0.5\n", "recipe", {}, &warnings);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("schedule.gamma"), std::string::npos);
}

TEST(RecipeOfStages, SaysWhatChanges) {
  std::vector<std::string> keys;
  for (const train::SettingChange& change : changes_at_stage(parse(), 1)) keys.push_back(change.key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"data.train_images", "train.steps", "train.batch", "train.accumulate",
                                      "optimizer.learning_rate", "schedule.name", "schedule.warmup_steps"}));
}

TEST(RecipeOfStages, MayGoOnOtherwiseWhereItIsAskedFor) {
  const Recipe other = parse({"stages.2.optimizer.learning_rate=0.01"});
  EXPECT_ERROR(changes_on_resume(parse(), other, {}, "last"), ErrorCode::invalid_argument,
               "stages.2.optimizer.learning_rate = 0.1 (now 0.01)", "--set");
  const auto changes = changes_on_resume(parse(), other, {"stages.2.optimizer.learning_rate"}, "last");
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, "stages.2.optimizer.learning_rate");
  EXPECT_ERROR(
      changes_on_resume(parse(), parse({"stages.1.train.batch=2"}), {"stages.1.train.batch"}, "last"),
      ErrorCode::invalid_argument, "stages.1.train.batch = 4 (now 2)", "cannot go on");
  EXPECT_ERROR(changes_on_resume(parse(), parse({}, "\n[[stages]]\n"), {}, "last"),
               ErrorCode::invalid_argument, "2 stages (now 3)");
}

Checkpoint last_of(const std::filesystem::path& folder) {
  return load_checkpoint(folder / "checkpoints" / "last.safetensors");
}

// Eight steps of the first stage, three of the second, of two batches each.
TEST(RunOfStages, EndsWithTheSameBitsWhereverItWasStopped) {
  const testing::TemporaryFolder folder;
  const RunResult straight = run_recipe(parse(), {.folder = folder / "straight", .quiet = true});
  EXPECT_TRUE(straight.fit.completed);
  EXPECT_EQ(straight.fit.position.step, 11);
  EXPECT_EQ(straight.fit.position.stage.index, 1);
  const Checkpoint wanted = last_of(folder / "straight");
  for (const int64_t stop : {3, 7, 8, 9, 10}) {
    const std::filesystem::path run = folder / std::to_string(stop);
    EXPECT_FALSE(run_recipe(parse(), {.folder = run, .max_steps = stop, .quiet = true}).fit.completed);
    EXPECT_EQ(last_of(run).metadata.contains("stage"), stop >= 8) << stop;
    const RunResult result = run_recipe(parse(), {.folder = run, .resume = true, .quiet = true});
    EXPECT_TRUE(result.fit.completed);
    const Checkpoint reached = last_of(run);
    ASSERT_EQ(reached.tensors.size(), wanted.tensors.size());
    for (const auto& [name, tensor] : wanted.tensors)
      EXPECT_TRUE(reached.tensors.at(name).identical(tensor)) << name << " after a stop at " << stop;
    EXPECT_EQ(result.fit.history.changes.size(), straight.fit.history.changes.size()) << stop;
  }
}

TEST(RunOfStages, ReportsWhatEachWas) {
  const testing::TemporaryFolder folder;
  const RunResult result = run_recipe(parse(), {.folder = folder / "run", .quiet = true});
  std::vector<int64_t> stages;
  for (const train::EpochRow& row : result.fit.history.epochs) stages.push_back(row.stage);
  EXPECT_EQ(stages, (std::vector<int64_t>{0, 0, 1, 1}));
  const std::string report = read_text_file(folder / "run" / "report.html");
  EXPECT_NE(report.find("<th>Stage</th>"), std::string::npos);
  EXPECT_NE(report.find("From step 8 on train.batch is 8; before it was 4."), std::string::npos);
  EXPECT_NE(report.find("[[stages]]"), std::string::npos);
}

// The moments of the first stage go on, or the run would be the one that starts from its weights.
TEST(RunOfStages, CarriesWhatTheOptimizerKeeps) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> adam{"optimizer.name=adam", "model.dropout=0"};
  std::vector<std::string> all = adam;
  all.emplace_back("train.carried=all");
  run_recipe(parse(adam), {.folder = folder / "moments", .quiet = true});
  run_recipe(parse(all), {.folder = folder / "all", .quiet = true});
  const Checkpoint moments = last_of(folder / "moments");
  EXPECT_EQ(moments.tensors.at("optimizer_step").at(0), 3);
  EXPECT_EQ(last_of(folder / "all").tensors.at("optimizer_step").at(0), 11);
  EXPECT_FALSE(moments.tensors.at("fc1.weight").identical(last_of(folder / "all").tensors.at("fc1.weight")));
}

}  // namespace
}  // namespace tessera::recipe
