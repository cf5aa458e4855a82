// What a resumed run may have otherwise.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"

#include "recipe/recipe_fields.h"

namespace tessera::recipe {
namespace {

bool has_effect(const RecipeField& field, Recipe& recipe) {
  if (field.used_by.empty()) return true;
  const std::string& chosen = *std::get<std::string*>(section_selector(field.section).slot(recipe));
  return std::find(field.used_by.begin(), field.used_by.end(), chosen) != field.used_by.end();
}

std::string value_text(const RecipeField& field, const Recipe& recipe) {
  return field_value(field, recipe).value_or("unset");
}

std::string keys_with(Resuming resuming) {
  std::vector<std::string> keys;
  for (const RecipeField& field : recipe_fields()) {
    if (field.resuming == resuming) keys.push_back(field.path());
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
  Recipe effective = now;  // a Slot points to mutable members
  for (const RecipeField& field : recipe_fields()) {
    const std::string before = value_text(field, begun);
    const std::string after = value_text(field, now);
    if (before == after || !has_effect(field, effective)) continue;
    changes.push_back({.key = field.path(), .before = before, .after = after});
    const std::string difference = fmt::format("{} = {} (now {})", field.path(), before, after);
    if (field.resuming == Resuming::fixed) fixed.push_back(difference);
    if (field.resuming == Resuming::asked && !asked.contains(field.path())) unasked.push_back(difference);
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
