// What a resumed run may have otherwise.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/train/task_registry.h"

#include "recipe/recipe_table.h"

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
  for (const RecipeField& field : table.fields()) {
    const std::string before = value_text(field, begun);
    const std::string after = value_text(field, now);
    if (before == after || !table.has_effect(now, field)) continue;
    changes.push_back({.key = field.path(), .before = before, .after = after});
    const std::string difference = fmt::format("{} = {} (now {})", field.path(), before, after);
    if (field.option->resuming == Resuming::fixed) fixed.push_back(difference);
    // What had no effect before comes with a choice, which was asked for or is in the list itself.
    const bool is_new = !table.has_effect(begun, field);
    if (field.option->resuming == Resuming::asked && !is_new && !asked.contains(field.path()))
      unasked.push_back(difference);
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
