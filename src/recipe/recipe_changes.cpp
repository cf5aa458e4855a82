// What a resumed run may have otherwise.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/train/task_registry.h"

#include "recipe/recipe_table.h"
#include "recipe/recipe_toml.h"

namespace tessera::recipe {
namespace {

std::string value_text(const RecipeField& field, const Recipe& recipe) {
  const OptionValue* value = recipe.values.find(field.path());
  return value == nullptr ? "unset" : to_toml(*value);
}

std::string keys_with(Resuming resuming) {
  std::vector<std::string> keys;
  for (const std::string& task : train::tasks().names()) {
    for (const RecipeField& field : recipe_table(task).fields()) {
      const bool is_new = std::find(keys.begin(), keys.end(), field.path()) == keys.end();
      if (field.option->resuming == resuming && is_new) keys.push_back(field.path());
    }
  }
  return fmt::format("`{}`", fmt::join(keys, "`, `"));
}

}  // namespace

std::vector<train::SettingChange> changes_on_resume(const Recipe& begun, const Recipe& now,
                                                    const std::set<std::string>& asked,
                                                    std::string_view name) {
  std::vector<train::SettingChange> changes;
  std::vector<std::string> fixed;
  std::vector<std::string> unasked;
  const RecipeTable& table = recipe_table(now.task());
  const auto compare = [&](const Recipe& old, const Recipe& present, const RecipeField& field,
                           const std::string& prefix) {
    const std::string before = value_text(field, old);
    const std::string after = value_text(field, present);
    if (before == after || !table.has_effect(present, field)) return;
    const std::string path = prefix + field.path();
    changes.push_back({.key = path, .before = before, .after = after});
    const std::string difference = fmt::format("{} = {} (now {})", path, before, after);
    if (field.option->resuming == Resuming::fixed) fixed.push_back(difference);
    // What had no effect before comes with a choice, which was asked for or is in the list itself.
    const bool is_new = !table.has_effect(old, field);
    const bool is_asked = asked.contains(path) || asked.contains(field.path());
    if (field.option->resuming == Resuming::asked && !is_new && !is_asked) unasked.push_back(difference);
  };
  if (begun.stages.size() != now.stages.size())
    fixed.push_back(fmt::format("{} stages (now {})", begun.stages.size(), now.stages.size()));
  const int64_t stages = fixed.empty() ? now.stage_count() : 0;
  for (int64_t stage = 0; stage < stages; ++stage) {
    const std::string prefix = now.stages.empty() ? "" : fmt::format("{}.{}.", kStages, stage + 1);
    for (const RecipeField& field : table.fields()) {
      const bool is_own = !now.stages.empty() && field.is_by_stage();
      if (is_own || stage == 0)
        compare(begun.at_stage(stage), now.at_stage(stage), field, is_own ? prefix : "");
    }
  }
  require(fixed.empty(), ErrorCode::invalid_argument,
          "{}: the run was begun with {} and cannot go on otherwise: a place in the data would mean another",
          name, fmt::join(fixed, ", "));
  require(unasked.empty(), ErrorCode::invalid_argument,
          "{}: the run was begun with {}: go on with the recipe.toml of its folder, or ask for what shall "
          "change by --set",
          name, fmt::join(unasked, ", "));
  return changes;
}

std::vector<train::SettingChange> changes_at_stage(const Recipe& recipe, int64_t index) {
  std::vector<train::SettingChange> changes;
  const RecipeTable& table = recipe_table(recipe.task());
  const Recipe before = recipe.at_stage(index - 1);
  const Recipe after = recipe.at_stage(index);
  for (const RecipeField& field : table.fields()) {
    const std::string old = value_text(field, before);
    const std::string present = value_text(field, after);
    if (old != present && table.has_effect(after, field))
      changes.push_back({.key = field.path(), .before = old, .after = present});
  }
  return changes;
}

std::set<std::string> overridden_keys(const std::vector<std::string>& overrides) {
  std::set<std::string> keys;
  for (const std::string& text : overrides) keys.insert(text.substr(0, text.find('=')));
  return keys;
}

std::string resuming_reference() {
  return fmt::format("- They may differ: {}.\n- They must not, even when asked: {}.\n",
                     keys_with(Resuming::free), keys_with(Resuming::fixed));
}

}  // namespace tessera::recipe
