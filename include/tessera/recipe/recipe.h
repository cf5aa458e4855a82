// Recipes: what to train, on which data and how, as TOML. docs/recipes.md lists every key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/train/history.h"

namespace tessera::recipe {

// Values by section and key, "train.epochs": what a recipe gives and the defaults of what it leaves out.
// Which keys there are is the task's matter, the optimizer's and the schedule's, which register their own;
// those that every recipe has stand in src/recipe/recipe_table.cpp.
struct Recipe {
  Options values;
  // Of a run in stages, all values of each: those above with what its table [[stages]] says in their place.
  // What stages say need not be above, so that whoever reads values takes at_stage() of them.
  std::vector<Options> stages = {};

  const std::string& task() const { return values.text("task.name"); }
  // At least 1.
  int64_t stage_count() const { return std::max<int64_t>(std::ssize(stages), 1); }
  // That of one stage alone, 0 for the first. A recipe without stages is its only one.
  Recipe at_stage(int64_t index) const;
  bool operator==(const Recipe&) const = default;
};

// The recipe in `text`, changed by `overrides` ("optimizer.learning_rate=0.2": a dotted key and a TOML value;
// text that is no TOML value is taken as a string). They change every stage, but for
// "stages.2.train.epochs=3", which is of the second alone. `name` stands in the messages. Throws
// Error(invalid_argument) that names the line or the override, what is wrong with it and the nearest valid
// name, on bad TOML, unknown keys, wrong types, values out of range and values that contradict each other.
// Touches no file, but looks whether there is a plug-in of the device's name. `warnings`, if given, gets a
// line for each key that has no effect on the optimizer or schedule chosen.
Recipe parse_recipe(std::string_view text, std::string_view name,
                    const std::vector<std::string>& overrides = {},
                    std::vector<std::string>* warnings = nullptr);

// Whether recipes of the task have the key, "data" and "workers".
bool has_key(const std::string& task, std::string_view section, std::string_view key);

// parse_recipe() of a file; logs the warnings. Also throws when the recipe, the data folder or the weights
// that it names are not there: Error(io) with the nearest file name that is.
Recipe load_recipe(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

// Throws Error(io) that names the key when a file or folder that the recipe names does not exist.
// load_recipe() calls it.
void check_recipe_files(const Recipe& recipe);

// The recipe with every value spelled out; parse_recipe() of it gives an equal recipe. Unset values stand as
// comments.
std::string to_toml(const Recipe& recipe);

// What a run that was begun with one recipe has otherwise when it goes on with another: each key that has an
// effect and differs. `asked` holds the keys that the user named for it (--set). Throws
// Error(invalid_argument) that begins with `name` and names every key that differs and decides what is
// computed, unless it was asked for, and those on which the order of the data depends in any case.
std::vector<train::SettingChange> changes_on_resume(const Recipe& begun, const Recipe& now,
                                                    const std::set<std::string>& asked,
                                                    std::string_view name);

// What a stage, but the first, has otherwise than the one before it: each key that has an effect and differs.
std::vector<train::SettingChange> changes_at_stage(const Recipe& recipe, int64_t index);

// The keys that such overrides name.
std::set<std::string> overridden_keys(const std::vector<std::string>& overrides);

// Which keys may differ on resuming, in Markdown. docs/checkpoints.md holds it.
std::string resuming_reference();

// Tables of all keys in Markdown: key, type, default, limits, meaning; those of each task apart.
// docs/recipes.md holds them.
std::string recipe_reference();

}  // namespace tessera::recipe
