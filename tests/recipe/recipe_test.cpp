#include "tessera/recipe/recipe.h"

#include <fstream>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tessera/optim/registry.h"
#include "tessera/recipe/run.h"
#include "tessera/train/task_registry.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "test_folder.h"

namespace tessera::recipe {
namespace {

constexpr auto kInvalid = ErrorCode::invalid_argument;

// A recipe that needs no data folder unless the text names one.
Recipe parse(const std::string& text, std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), "data.kind=synthetic");
  return parse_recipe(text, "recipe.toml", overrides);
}

// The whole message that a recipe is refused with.
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Recipe, ReadsEveryType) {
  const Recipe recipe = parse(R"(
model.name = "mlp"
model.hidden = [512, 256]
model.dropout = 0.25
[train]
epochs = 7
[optimizer]
learning_rate = 1      # a whole number where any number is welcome
nesterov = true
[schedule]
name = "step"
milestones = [2, 4.5]
)");
  EXPECT_EQ(recipe.values.text("model.name"), "mlp");
  EXPECT_EQ(recipe.values.integers("model.hidden"), (std::vector<int64_t>{512, 256}));
  EXPECT_EQ(recipe.values.real("model.dropout"), 0.25);
  EXPECT_FALSE(recipe.values.has("train.recompute"));
  EXPECT_EQ(recipe.values.integer("train.epochs"), 7);
  EXPECT_EQ(recipe.values.real("optimizer.learning_rate"), 1.0);
  EXPECT_TRUE(recipe.values.boolean("optimizer.nesterov"));
  EXPECT_EQ(recipe.values.reals("schedule.milestones"), (std::vector<double>{2, 4.5}));
}

TEST(Recipe, FillsInWhatDependsOnOtherKeys) {
  EXPECT_EQ(parse("").values.real("optimizer.learning_rate"), 0.1);
  const Options lamb = parse("optimizer = {name = 'lamb', beta2 = 0.99}").values.section("optimizer");
  EXPECT_EQ(lamb.real("learning_rate"), 0.001);
  EXPECT_EQ(lamb.real("epsilon"), 1e-6);
  EXPECT_EQ(lamb.real("beta2"), 0.99);
  EXPECT_EQ(parse("optimizer.name = 'rmsprop'").values.real("optimizer.momentum"), 0.0);
  EXPECT_EQ(parse("optimizer = {name = 'adam', learning_rate = 0.1}").values.real("optimizer.learning_rate"),
            0.1);
  EXPECT_EQ(parse("data.classes = 7").values.integer("model.classes"), 7);
  EXPECT_EQ(parse("").values.integer("data.train_images"), 10000);
  EXPECT_FALSE(parse("", {"data.kind=idx", "data.path=x"}).values.has("data.train_images"));
}

TEST(Recipe, TellsAChoiceFromOneLeftToTheDevice) {
  const Recipe unset = parse("train.device = 'reference'");
  EXPECT_FALSE(unset.values.has("train.recompute"));
  EXPECT_EQ(make_trainer_options(unset).recompute, std::nullopt);
  EXPECT_TRUE(make_trainer_options(unset).deterministic);
  EXPECT_EQ(unset.values.text("train.precision"), "auto");
  EXPECT_EQ(make_trainer_options(unset).precision, std::nullopt);
  const Recipe exact = parse("train.precision = 'fp32'", {"train.device=reference"});
  EXPECT_EQ(make_trainer_options(exact).precision, Precision::fp32);
  EXPECT_FALSE(
      make_trainer_options(parse("train.deterministic = false", {"train.device=reference"})).deterministic);
  for (const bool chosen : {true, false}) {
    const Recipe recipe =
        parse(chosen ? "train.recompute = true" : "train.recompute = false", {"train.device=reference"});
    EXPECT_EQ(recipe.values.boolean("train.recompute"), chosen);
    EXPECT_EQ(parse_recipe(to_toml(recipe), "copy"), recipe);
    EXPECT_EQ(make_trainer_options(recipe).recompute, chosen);
  }
  EXPECT_NE(refusal("train.recompute = 1").find("'train.recompute' must be true or false"),
            std::string::npos);
}

TEST(Recipe, PrintsWhatItReadsBack) {
  Recipe recipe = parse(R"(
[model]
weights = "a \"quoted\" \\ name\n\u0001 caf\u00e9"
blocks = [2, 2, 2]
[optimizer]
name = "adamw"
weight_decay = 1e-5
epsilon = 1e-12
[schedule]
initial = 0.1
final = 0.30000000000000004
)");
  const std::string text = to_toml(recipe);
  EXPECT_EQ(parse_recipe(text, "printed"), recipe) << text;
  EXPECT_NE(text.find("[optimizer]\nname = \"adamw\"\nlearning_rate = 0.001\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# recompute: those of at most 32 MiB; on a GPU a few\n"), std::string::npos) << text;

  recipe.values.set("data.kind", std::string("idx"));
  recipe.values.set("data.path", std::string("somewhere"));
  recipe.values.set("train.seed", INT64_MAX);
  EXPECT_EQ(parse_recipe(to_toml(recipe), "printed"), recipe);
}

TEST(Recipe, RefusesUnknownNamesWithTheNearest) {
  EXPECT_EQ(refusal("[optimizer]\nlearing_rate = 0.1"),
            "recipe.toml:2: unknown key 'optimizer.learing_rate', did you mean 'learning_rate'?");
  EXPECT_EQ(refusal("[train]\nlearning_rate = 0.1"),
            "recipe.toml:2: unknown key 'train.learning_rate', did you mean 'optimizer.learning_rate'?");
  EXPECT_EQ(refusal("epochs = 3"), "recipe.toml:1: unknown key 'epochs', did you mean 'train.epochs'?");
  EXPECT_EQ(refusal("[optimiser]"), "recipe.toml:1: unknown table 'optimiser', did you mean 'optimizer'?");
  EXPECT_EQ(
      refusal("optimizer.name = 'adm'"),
      fmt::format("recipe.toml:1: 'optimizer.name' has no choice \"adm\", did you mean 'adam'? (choices: {})",
                  fmt::join(optim::optimizers().names(), ", ")));
  EXPECT_EQ(refusal("[train]\nxylophone_count = 1"), "recipe.toml:2: unknown key 'train.xylophone_count'");
}

TEST(Recipe, ReportsTheFirstFaultOfTheFile) {
  EXPECT_EQ(refusal("[train]\nqqqqqqqq = 1\n[model]\naaaaaaaa = 1"),
            "recipe.toml:2: unknown key 'train.qqqqqqqq'");
}

TEST(Recipe, RefusesWrongTypes) {
  EXPECT_EQ(refusal("[train]\nepochs = 'five'"),
            "recipe.toml:2: 'train.epochs' must be a whole number, not \"five\"");
  EXPECT_EQ(refusal("[train]\nepochs = 5.5"),
            "recipe.toml:2: 'train.epochs' must be a whole number, not 5.5");
  EXPECT_EQ(refusal("[train]\ndevice = 0"), "recipe.toml:2: 'train.device' must be text, not 0");
  EXPECT_EQ(refusal("[optimizer]\nnesterov = 1"),
            "recipe.toml:2: 'optimizer.nesterov' must be true or false, not 1");
  EXPECT_EQ(refusal("[data]\nmean = 0.5"), "recipe.toml:2: 'data.mean' must be a list of numbers, not 0.5");
  EXPECT_EQ(refusal("[data]\nmean = [[0.5]]"),
            "recipe.toml:2: 'data.mean' must be a list of numbers, not one with a list");
  EXPECT_EQ(refusal("[model]\nblocks = [2, true]"),
            "recipe.toml:2: 'model.blocks' must be a list of whole numbers, not one with true");
  EXPECT_EQ(refusal("train = 5"), "recipe.toml:1: 'train' must be a table, written [train]");
  EXPECT_EQ(refusal("[[train]]\nepochs = 5"), "recipe.toml:1: 'train' must be a table, written [train]");
  EXPECT_EQ(refusal("[train.epochs]\nvalue = 5"),
            "recipe.toml:1: 'train.epochs' must be a whole number, not a table");
  EXPECT_EQ(refusal("[train]\nepochs = 1979-05-27"),
            "recipe.toml:2: 'train.epochs' must be a whole number, not a date or time");
}

TEST(Recipe, RefusesValuesOutOfRange) {
  EXPECT_EQ(refusal("[train]\nepochs = 0"), "recipe.toml:2: 'train.epochs' must be from 1 to 1000000, not 0");
  EXPECT_EQ(refusal("[train]\nsmoothing = 1"),
            "recipe.toml:2: 'train.smoothing' must be at least 0 and below 1, not 1");
  EXPECT_EQ(refusal("[optimizer]\nlearning_rate = -0.1"),
            "recipe.toml:2: 'optimizer.learning_rate' must be above 0, not -0.1");
  EXPECT_EQ(refusal("[optimizer]\nlearning_rate = nan"),
            "recipe.toml:2: 'optimizer.learning_rate' must be above 0, not nan");
  EXPECT_EQ(refusal("[optimizer]\nweight_decay = inf"),
            "recipe.toml:2: 'optimizer.weight_decay' must be at least 0, not inf");
  // As steps, more epochs would not be whole numbers that a computer holds.
  EXPECT_EQ(refusal("[schedule]\nwarmup_epochs = 1e300"),
            "recipe.toml:2: 'schedule.warmup_epochs' must be from 0 to 1000000, not 1e+300");
  EXPECT_EQ(refusal("[schedule]\nname = 'step'\nmilestones = [3, 1e300]"),
            "recipe.toml:3: 'schedule.milestones' must be above 0 and at most 1000000, not 1e+300");
  EXPECT_EQ(refusal("[schedule]\nname = 'step'\nmilestones = [0, 3]"),
            "recipe.toml:3: 'schedule.milestones' must be above 0 and at most 1000000, not 0");
}

TEST(Recipe, RefusesContradictions) {
  EXPECT_EQ(refusal("[data]\nchannels = 3"),
            "recipe.toml:2: 'data.mean' has 1 values for 3 channels ('data.channels')");
  EXPECT_EQ(refusal("[schedule]\nname = 'step'"),
            "recipe.toml:2: the step schedule needs 'schedule.milestones', such as [30, 60, 80]");
  EXPECT_EQ(refusal("[schedule]\nname = 'step'\nmilestones = [3, 3]"),
            "recipe.toml:3: 'schedule.milestones' must rise");
  EXPECT_EQ(refusal("[schedule]\nwarmup_epochs = 1\nwarmup_steps = 100"),
            "recipe.toml:3: only one of 'schedule.warmup_epochs' and 'schedule.warmup_steps' may be above 0");
  EXPECT_EQ(refusal("[model]\nclasses = 2"),
            "recipe.toml:2: the network has 2 outputs ('model.classes') for 10 classes ('data.classes')");
  EXPECT_EQ(refusal("[train]\ndevice = 'gpu'"),
            "recipe.toml:2: 'train.device' is \"gpu\"; devices are auto, cpu, cuda, cuda:N and reference, "
            "did you mean "
            "'cpu'?");
  EXPECT_EQ(refusal("train.device = 'cuda:3'"), "accepted");
  EXPECT_ERROR(parse_recipe("", "r.toml"), kInvalid, "r.toml: 'data.path'", "--set data.path=FOLDER");
}

TEST(Recipe, RefusesBadToml) {
  EXPECT_ERROR(parse("\n[train\nepochs = 1"), kInvalid, "recipe.toml:2: ");
  EXPECT_ERROR(parse("[train]\nepochs = 1\nepochs = 2"), kInvalid, "recipe.toml:3: ", "epochs");
  EXPECT_ERROR(parse("[train]\nepochs = 99999999999999999999"), kInvalid, "recipe.toml:2: ");
  EXPECT_ERROR(parse(std::string("\xff\xfe\x00", 3)), kInvalid, "recipe.toml:1: ");
  EXPECT_ERROR(parse("[d\u00e9]"), kInvalid, "recipe.toml:1: ");
  EXPECT_ERROR(parse("\n[\001data]"), kInvalid, "recipe.toml:2: ");
  EXPECT_ERROR(parse("a = " + std::string(100000, '[')), kInvalid, "recipe.toml:1: ");
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

// A table for each part of half a million, taken apart by recursion, would overflow the stack.
TEST(Recipe, RefusesTomlThatNestsDeeply) {
  const std::string parts = "more than 16 parts";
  EXPECT_ERROR(parse("\na" + repeated(".a", 500'000) + " = 1"), kInvalid, "recipe.toml:2: ", parts);
  EXPECT_ERROR(parse("[a" + repeated(" . 'a'", 16) + "]"), kInvalid, "recipe.toml:1: ", parts);
  EXPECT_ERROR(parse("a = {a" + repeated(".\"a\"", 16) + " = 1}"), kInvalid, parts);
  const std::string nested = "nested more than 16 deep";
  EXPECT_ERROR(parse("a = [\n" + repeated("{a = [\n", 20)), kInvalid, "recipe.toml:9: ", nested);
  EXPECT_ERROR(parse("a = " + repeated("[", 17) + repeated("]", 17)), kInvalid, nested);
  // Neither texts nor comments nest, whatever quotes they hold.
  const std::string deep = repeated("a.", 20) + repeated("[", 20);
  EXPECT_ERROR(parse("# " + deep + "\nx = \"" + deep + "\\\"\" # " + deep), kInvalid,
               "recipe.toml:2: unknown key 'x'");
  EXPECT_ERROR(parse("x = '" + deep + "\"'\ny = 1"), kInvalid, "recipe.toml:1: unknown key 'x'");
  EXPECT_ERROR(parse("x = \"\"\"" + deep + "\n\"" + deep + "\\\"\"\"\"\"\ny = 1"), kInvalid,
               "unknown key 'x'");
  EXPECT_ERROR(parse("x = \"\"\"q\"\"\"\"\" # \"\"\"\ny" + repeated(".a", 20) + " = 1"), kInvalid,
               "recipe.toml:2: ", parts);
  EXPECT_ERROR(parse("x = \"" + repeated("[", 20) + "\ny" + repeated(".a", 20) + " = 1"), kInvalid,
               "recipe.toml:");
  // In an override it is text, as whatever else is no value of TOML.
  const std::string path = repeated("../", 20) + "data";
  EXPECT_EQ(parse("", {"data.path=" + path}).values.text("data.path"), path);
  EXPECT_ERROR(parse("", {"train.epochs=a" + repeated(".a", 500'000)}), kInvalid, "train.epochs");
}

TEST(Recipe, TakesOverrides) {
  const Recipe recipe =
      parse("train.epochs = 3", {"train.epochs=4", "train.epochs=5", "model.hidden=[7]",
                                 "train.device=cuda:1", "model.weights=2024", "model.name=\"mlp\"",
                                 "data.path=C:\\with space", "optimizer.nesterov=true"});
  EXPECT_EQ(recipe.values.integer("train.epochs"), 5);
  EXPECT_EQ(recipe.values.integers("model.hidden"), std::vector<int64_t>{7});
  EXPECT_EQ(recipe.values.text("train.device"), "cuda:1");
  EXPECT_EQ(recipe.values.text("model.weights"), "2024");
  EXPECT_EQ(recipe.values.text("model.name"), "mlp");
  EXPECT_EQ(recipe.values.text("data.path"), "C:\\with space");
  EXPECT_TRUE(recipe.values.boolean("optimizer.nesterov"));
}

TEST(Recipe, RefusesOverridesByName) {
  EXPECT_EQ(refusal("", {"train.epoch=3"}),
            "--set train.epoch=3: unknown key 'train.epoch', did you mean 'epochs'?");
  EXPECT_EQ(refusal("", {"epochs=3"}), "--set epochs=3: unknown key 'epochs', did you mean 'train.epochs'?");
  EXPECT_EQ(
      refusal("", {"optimiser.momentum=0.5"}),
      "--set optimiser.momentum=0.5: unknown key 'optimiser.momentum', did you mean 'optimizer.momentum'?");
  EXPECT_EQ(
      refusal("", {"optimiser.momentun=0.5"}),
      "--set optimiser.momentun=0.5: unknown key 'optimiser.momentun', did you mean 'optimizer.momentum'?");
  EXPECT_EQ(refusal("", {"train.epochs=many"}),
            "--set train.epochs=many: 'train.epochs' must be a whole number, not \"many\"");
  EXPECT_EQ(refusal("", {"train.epochs=3\nbatch = 4"}).substr(0, 20), "--set train.epochs=3");
  EXPECT_EQ(refusal("", {"train.epochs"}),
            "--set train.epochs: expected a key and a value, such as train.epochs=5");
  EXPECT_EQ(refusal("", {"=5"}), "--set =5: expected a key and a value, such as train.epochs=5");
  EXPECT_EQ(refusal("", {"train=5"}), "--set train=5: 'train' must be a table, written [train]");
  EXPECT_EQ(refusal("", {"data.path=\xff"}), "--set data.path=\xff: the value is not UTF-8");
}

TEST(Recipe, WarnsOfKeysWithoutEffect) {
  std::vector<std::string> warnings;
  parse_recipe("[data]\nkind = 'synthetic'\n[optimizer]\nname = 'adam'\nmomentum = 0.5", "r.toml",
               {"schedule.gamma=0.5"}, &warnings);
  EXPECT_EQ(warnings, (std::vector<std::string>{
                          "r.toml:5: 'optimizer.momentum' has no effect with optimizer.name = \"adam\"",
                          "--set schedule.gamma=0.5: 'schedule.gamma' has no effect with schedule.name = "
                          "\"constant\""}));
}

// Which one that is, it says itself; recipes of runs from before tasks had names depend on it.
TEST(Recipe, IsOfTheDefaultTaskUnlessItNamesOne) {
  EXPECT_EQ(parse("").task(), train::default_task().name);
  EXPECT_EQ(train::default_task().name, "image_classification");
  Registry<train::TaskDescription> tasks("task");
  tasks.add({.name = "first"});
  EXPECT_ERROR(train::default_task(tasks), ErrorCode::internal, "no task is the default one");
  tasks.add({.name = "second", .is_default = true});
  EXPECT_EQ(train::default_task(tasks).name, "second");
  tasks.add({.name = "third", .is_default = true});
  EXPECT_ERROR(train::default_task(tasks), ErrorCode::internal, "'second'", "'third'");
}

// As they were spelled out before tasks had names: other keys first, and all of them.
TEST(Recipe, ReadsWhatEarlierVersionsSpelledOut) {
  const testing::TemporaryFolder folder;
  const std::string present = to_toml(parse("[optimizer]\nname = 'adam'"));
  const size_t model = present.find("[model]");
  const size_t optimizer = present.find("[optimizer]");
  ASSERT_TRUE(model != std::string::npos && optimizer != std::string::npos && model < optimizer);
  const std::string earlier = present.substr(optimizer) + "\n" + present.substr(model, optimizer - model);
  std::ofstream(folder / "recipe.toml") << earlier;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(to_toml(load_recipe(folder / "recipe.toml")), present);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  std::ofstream(folder / "recipe.toml") << earlier << "# my own words\n";
  ::testing::internal::CaptureStderr();
  load_recipe(folder / "recipe.toml");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("no effect"), std::string::npos);
}

TEST(Recipe, LoadsFilesAndNamesMissingOnes) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "lenet.toml") << "[data]\npath = \"" << (folder / "mnist").string() << "\"\n";
  EXPECT_ERROR(load_recipe(folder / "lenett.toml"), ErrorCode::io,
               "lenett.toml: no such recipe, did you mean", "lenet.toml'?");
  EXPECT_ERROR(load_recipe(folder / "lenet.toml"), ErrorCode::io,
               "mnist: no such file or folder ('data.path')");
  std::filesystem::create_directory(folder / "mnist");
  EXPECT_EQ(load_recipe(folder / "lenet.toml").values.text("data.path"), (folder / "mnist").string());
  EXPECT_ERROR(load_recipe(folder / "lenet.toml", {"data.path=" + (folder / "mnits/").string()}),
               ErrorCode::io, "mnits/: no such file or folder ('data.path'), did you mean", "/mnist'?");
  EXPECT_ERROR(load_recipe(folder / "lenet.toml", {"model.weights=" + (folder / "w").string()}),
               ErrorCode::io, "'model.weights'");
  EXPECT_ERROR(load_recipe(folder.path()), ErrorCode::io, folder.path().string());
}

// docs/recipes.md holds the table of all keys as the program knows them.
TEST(Recipe, DocumentationIsCurrent) {
  const std::string page = read(std::filesystem::path(TESSERA_TEST_FOLDER) / "../../docs/recipes.md");
  EXPECT_NE(page.find(recipe_reference()), std::string::npos) << "docs/recipes.md should hold this table:\n"
                                                              << recipe_reference();
}

TEST(Recipe, ShippedRecipesAreValid) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(TESSERA_TEST_FOLDER) / "../../recipes")) {
    if (entry.path().extension() != ".toml") continue;
    std::vector<std::string> warnings;
    EXPECT_NO_THROW(parse_recipe(read(entry.path()), entry.path().string(), {}, &warnings)) << entry.path();
    EXPECT_TRUE(warnings.empty()) << warnings[0];
    ++count;
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace tessera::recipe
