// Somebody's own tables: a recipe names their kind and its options, as it names those of the library.
#include <cstdio>
#include <filesystem>

#include <tessera/tessera.h>

namespace ts = tessera;

namespace {

// Two coins are thrown in each row; whether they show the same is the third column.
ts::data::TextColumn coins(const std::string& name, int64_t rows) {
  ts::data::TextColumn column{.name = name, .values = {"0", "1"}, .codes = {}};
  const ts::Random random(1);
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = static_cast<int32_t>(random.below(2 * static_cast<uint64_t>(row), 2));
    const auto second = static_cast<int32_t>(random.below(2 * static_cast<uint64_t>(row) + 1, 2));
    column.codes.push_back(name == "first" ? first : name == "second" ? second : first == second);
  }
  return column;
}

const ts::data::TableRegistration kCoins(
    {.name = "coins",
     .documentation = "Coins that are thrown",
     .options = {{.key = "throws", .value = int64_t{100}, .documentation = "Rows"}},
     .open = [](const ts::Options& options, const std::vector<std::string>& names) {
       std::vector<ts::data::TextColumn> columns;
       for (const std::string& name : names) columns.push_back(coins(name, options.integer("throws")));
       return columns;
     }});

}  // namespace

int main(int count, char** arguments) {
  const auto folder = std::filesystem::temp_directory_path() / "tessera_own_data";
  std::filesystem::remove_all(folder);
  const ts::recipe::Recipe recipe = ts::recipe::parse_recipe(
      "task.name = 'click_through'\ntrain = {epochs = 10, batch = 20}\noptimizer = {name = 'adam', "
      "learning_rate "
      "= 0.01}\ndata = {kind = 'coins', throws = 1000, categories = ['first', 'second'], label = 'same'}",
      "coins", {std::string("train.device=") + (count > 1 ? arguments[1] : "auto")});
  const ts::recipe::RunResult result = ts::recipe::run_recipe(recipe, {.folder = folder, .quiet = true});
  const double area = result.last_evaluations().front().results.at("auc");
  std::filesystem::remove_all(folder);
  std::printf("area under the curve %g\n", area);
  return area > 0.99 ? 0 : 1;
}
