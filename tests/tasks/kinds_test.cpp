// Kinds of text and of tables that a program registers, as recipes name them.
#include <gtest/gtest.h>

#include "tessera/data/tables.h"
#include "tessera/recipe/run.h"
#include "tessera/tasks/texts.h"

#include "support/digit_text.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

constexpr int64_t kDigits = 10;

// Rows that count by data.step in digits: a token follows from the one before it.
class CountingTexts : public tasks::TextsInMemory {
 public:
  explicit CountingTexts(const Options& settings)
      : TextsInMemory(settings, [settings] { return count(settings); }) {}

  int64_t vocabulary() const override { return kDigits; }
  tasks::TextCoding coding() const override {
    return {.start = {0}, .tokens = digit_tokens, .text = digit_text};
  }
  std::function<std::string(int64_t token)> shown() const override {
    return [](int64_t token) { return std::to_string(token); };
  }

 private:
  static Tensor count(const Options& settings) {
    const int64_t width = settings.integer("data.tokens"), step = settings.integer("data.step");
    Tensor rows(DataType::int32, {200, width});
    for (int64_t i = 0; i < rows.size(); ++i)
      rows.set(i, static_cast<double>((i / width + step * (i % width)) % kDigits));
    return rows;
  }
};

const tasks::TextRegistration kCounting(
    {.name = "counting",
     .documentation = "digits that are counted",
     .options = {{.key = "step", .value = int64_t{1}, .documentation = "From one to the next"}},
     .open = [](const Options& settings) { return std::make_shared<const CountingTexts>(settings); },
     .check = [](const Options& data) -> std::vector<Contradiction> {
       if (data.integer("step") != 0) return {};
       return {{{"step"}, "'data.step' is 0, which counts nothing"}};
     }});

// Rows that happen where two columns are equal.
const data::TableRegistration kPairs(
    {.name = "pairs",
     .documentation = "pairs of numbers",
     .options = {{.key = "rows", .value = int64_t{10}, .documentation = "How many"}},
     .open = [](const Options& options, const std::vector<std::string>& columns) {
       std::vector<data::TextColumn> result;
       for (const std::string& name : columns) {
         data::TextColumn column{.name = name, .values = {"0", "1"}, .codes = {}};
         for (int64_t row = 0; row < options.integer("rows"); ++row) {
           const int64_t left = row % 2, right = row / 2 % 2;
           const int64_t value = name == "left" ? left : name == "right" ? right : int64_t{left == right};
           column.codes.push_back(static_cast<int32_t>(value));
         }
         result.push_back(std::move(column));
       }
       return result;
     }});

constexpr const char* kOfDigits =
    "task.name = 'language_model'\nmodel = {width = 16, heads = 2, layers = 1}\n"
    "data = {kind = 'counting', tokens = 8, step = 3}\noptimizer = {name = 'adam', learning_rate = 0.01}\n"
    "train = {epochs = 12, batch = 20, device = 'cpu'}";

TEST(Kinds, OfTextThatAProgramRegistersAreNamedInRecipes) {
  const TemporaryFolder folder;
  const recipe::Recipe recipe = recipe::parse_recipe(kOfDigits, "digits");
  recipe::run_recipe(recipe, {.folder = folder / "run", .quiet = true});
  recipe::FinishedRun run = recipe::open_run(folder / "run");
  EXPECT_EQ(run.workload.data, "counting");
  std::string told;
  const auto serve = [&](const nn::Task& task) { return run.trainer.serve(task); };
  train::continue_text(serve, run.workload.continuation(), "25",
                       {.tokens = 4, .sampling = {.temperature = 0}}, [&](std::string_view piece) {
                         told += piece;
                         return true;
                       });
  EXPECT_EQ(told, "8147");  // counted by 3
  EXPECT_EQ(run.workload.predictions().source->sizes().size(), 1U);
}

TEST(Kinds, OfTextCheckTheirOptions) {
  EXPECT_ERROR(recipe::parse_recipe(kOfDigits, "digits", {"data.step=0"}), ErrorCode::invalid_argument,
               "counts nothing", "--set data.step=0");
  EXPECT_ERROR(recipe::parse_recipe(kOfDigits, "digits", {"data.kind=countings"}),
               ErrorCode::invalid_argument, "countings", "counting");
}

TEST(Kinds, OfTablesThatAProgramRegistersAreNamedInRecipes) {
  const TemporaryFolder folder;
  const recipe::Recipe recipe = recipe::parse_recipe(
      "task.name = 'click_through'\ndata = {kind = 'pairs', rows = 800, label = 'equal', above = 0.5, "
      "categories = ['left', 'right']}\noptimizer = {name = 'adam', learning_rate = 0.01}\n"
      "train = {epochs = 12, batch = 20, device = 'cpu'}",
      "pairs");
  const recipe::RunResult result = recipe::run_recipe(recipe, {.folder = folder / "run", .quiet = true});
  EXPECT_GT(result.last_evaluations().front().results.at("auc"), 0.99);
}

}  // namespace
}  // namespace tessera::testing
