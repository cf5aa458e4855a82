#include "tessera/recipe/recipe.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/base/text.h"
#include "tessera/compile/device.h"
#include "tessera/optim/registry.h"
#include "tessera/train/task_registry.h"

#include "recipe/recipe_table.h"
#include "recipe/recipe_toml.h"
#include "recipe/recipe_values.h"

namespace tessera::recipe {
namespace {

constexpr uint64_t kMaximumRecipeBytes = 1 << 20;

// Where each key was last given: "recipe.toml:12" or "--set optimizer.momentum=2".
using Places = std::map<std::string, std::string, std::less<>>;

// ", did you mean 'x'?" for a key that is none: the same key of another section, else the nearest of its own
// section, else the nearest full name.
std::string suggestion(const RecipeTable& table, const Assignment& unknown) {
  std::vector<std::string> siblings;
  std::vector<std::string> paths;
  std::vector<std::string> sections;
  for (const RecipeField& field : table.fields()) {
    if (field.key() == unknown.key) return did_you_mean(field.path(), {field.path()});
    if (field.section == unknown.section) siblings.push_back(field.key());
    paths.push_back(field.path());
    if (sections.empty() || sections.back() != field.section) sections.push_back(field.section);
  }
  if (unknown.section.empty() && unknown.is_table) return did_you_mean(unknown.key, sections);
  const std::string near = did_you_mean(unknown.key, siblings);
  return near.empty() ? did_you_mean(full_name(unknown), paths) : near;
}

bool is_empty_list(const OptionValue& value) {
  return std::visit(
      []<typename T>(const T& held) {
        if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>) {
          return false;
        } else {
          return held.empty();
        }
      },
      value);
}

void apply(const RecipeTable& table, Recipe& recipe, Places& places, const Assignment& assignment) {
  if (assignment.section.empty() && assignment.key == kStages) {
    require(assignment.is_table && assignment.stage > 0, ErrorCode::invalid_argument,
            "{}: '{}' must be tables, each written [[{}]]", assignment.place, kStages, kStages);
    return;
  }
  if (assignment.section.empty() && table.has_section(assignment.key)) {
    require(assignment.is_table, ErrorCode::invalid_argument, "{}: '{}' must be a table, written [{}]",
            assignment.place, assignment.key, assignment.key);
    return;
  }
  const RecipeField* field = table.find(assignment.section, assignment.key);
  if (field == nullptr) {
    const bool is_unknown_table = assignment.section.empty() && assignment.is_table;
    fail(ErrorCode::invalid_argument, "{}: unknown {} '{}'{}", assignment.place,
         is_unknown_table ? "table" : "key", full_name(assignment), suggestion(table, assignment));
  }
  require(assignment.stage == 0 || field->is_by_stage(), ErrorCode::invalid_argument,
          "{}: '{}' is the same in all stages of a run", assignment.place, field->path());
  OptionValue value = read_value(*field, assignment);
  places[field->path()] = assignment.place;
  if (is_empty_list(value) && !field->option->unset.empty()) {
    recipe.values.erase(field->path());
  } else {
    recipe.values.set(field->path(), std::move(value));
  }
}

// Takes "stages.2." from the name of what is changed; 0 where it is none of one stage alone.
size_t take_stage(std::string& name) {
  const std::string prefix = std::string(kStages) + ".";
  if (!name.starts_with(prefix)) return 0;
  const size_t dot = name.find('.', prefix.size());
  const std::optional<int64_t> stage = parse_integer(name.substr(prefix.size(), dot - prefix.size()));
  if (!stage.has_value() || *stage < 1 || dot == std::string::npos) return 0;
  name.erase(0, dot + 1);
  return static_cast<size_t>(*stage);
}

Assignment parse_override(const RecipeTable& table, const std::string& text) {
  const size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  Assignment result;
  result.stage = take_stage(name);
  const size_t dot = name.find('.');
  result.place = "--set " + text;
  require(equals != std::string::npos && !name.empty(), ErrorCode::invalid_argument,
          "--set {}: expected a key and a value, such as train.epochs=5", text);
  result.section = dot == std::string::npos ? "" : name.substr(0, dot);
  result.key = dot == std::string::npos ? name : name.substr(dot + 1);
  const std::string value = text.substr(equals + 1);

  const RecipeField* field = table.find(result.section, result.key);
  const bool wants_text = field != nullptr && std::holds_alternative<std::string>(field->option->value);
  const bool is_value = read_toml_value(value, result.value);
  // For a key that takes text, 2024 and true are text as well.
  if (is_value && (!wants_text || std::holds_alternative<std::string>(result.value.value))) return result;
  require(read_toml_value(quote_toml(value), result.value), ErrorCode::invalid_argument,
          "{}: the value is not UTF-8", result.place);
  return result;
}

bool is_device_name(std::string_view name) {
  if (name == "auto" || name == "cpu" || name == "cuda" || name == "reference") return true;
  const std::string_view backend = name.substr(0, name.find(':'));
  if (backend != "cpu" && backend != "cuda") return Device::has_plugin(std::string(backend));
  if (!name.starts_with("cuda:") || name.size() > 8) return false;
  const std::string_view number = name.substr(5);
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

// Rules that one key alone cannot break: those of the task, the optimizer and the schedule, whose keys are
// those of their sections.
std::vector<Contradiction> contradictions(const Recipe& recipe) {
  std::vector<Contradiction> found;
  const auto append = [&](const std::string& prefix, const auto& check, const Options& options) {
    if (!check) return;
    for (Contradiction& one : check(options)) {
      for (std::string& key : one.keys) key.insert(0, prefix);
      found.push_back(std::move(one));
    }
  };
  const Options& values = recipe.values;
  append("", train::tasks().get(recipe.task()).check, values);
  const std::string& device = values.text("train.device");
  if (!is_device_name(device)) {
    found.push_back(
        {{"train.device"},
         fmt::format("'train.device' is {}; devices are auto, cpu, cuda, cuda:N and reference{}",
                     quote_toml(device), did_you_mean(device, {"auto", "cpu", "cuda", "reference"}))});
  }
  append("optimizer.", optim::optimizers().get(values.text("optimizer.name")).check,
         values.section("optimizer"));
  append("schedule.", optim::schedules().get(values.text("schedule.name")).check, values.section("schedule"));
  return found;
}

// Throws at the place of the last key given, of a recipe or one of its stages.
void check_contradictions(const Recipe& recipe, const Places& places, std::string_view name) {
  for (const Contradiction& one : contradictions(recipe)) {
    std::string place(name);
    for (const std::string& key : one.keys) {
      if (const auto found = places.find(key); found != places.end()) place = found->second;
    }
    fail(ErrorCode::invalid_argument, "{}: {}", place, one.message);
  }
}

// A line for each key that was given and does nothing, by its name.
Places unused_keys(const RecipeTable& table, const Recipe& recipe, const Places& places) {
  Places unused;
  for (const RecipeField& field : table.fields()) {
    const auto given = places.find(field.path());
    if (given == places.end() || table.has_effect(recipe, field)) continue;
    unused[field.path()] =
        fmt::format("{}: '{}' has no effect with {} = {}", given->second, field.path(),
                    table.selector(field.section).path(), quote_toml(table.choice(recipe, field)));
  }
  return unused;
}

// The task that the last of them names; "" where none does.
std::string task_of(const std::vector<Assignment>& assignments, const std::vector<std::string>& overrides) {
  std::string task;
  const auto take = [&](const Assignment& assignment) {
    const auto* name = std::get_if<std::string>(&assignment.value.value);
    if (full_name(assignment) == "task.name" && name != nullptr) task = *name;
  };
  for (const Assignment& assignment : assignments) take(assignment);
  for (const std::string& text : overrides) {
    if (text.starts_with("task.name=")) take(parse_override(recipe_table(""), text));
  }
  return task;
}

// What is not given has the default that goes with the choices made.
void fill_in(const RecipeTable& table, Recipe& recipe, const Places& places) {
  for (const RecipeField& field : table.fields()) {
    if (places.contains(field.path())) continue;
    // The selector stands before what depends on it.
    if (auto value = field.default_value(table.choice(recipe, field)))
      recipe.values.set(field.path(), *value);
  }
  const auto& complete = train::tasks().get(recipe.task()).complete;
  if (complete) complete(recipe.values);
}

// The nearest name in the folder of a path that does not exist.
std::string nearest_file(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.push_back((path.has_parent_path() ? entry.path() : entry.path().filename()).string());
  }
  return did_you_mean(path.string(), names);
}

// Whether a run wrote it, with every key: those without effect are then nobody's mistake.
bool was_written_by_a_run(const std::string& text, const std::string& name) {
  try {
    return is_spelled_out(text, parse_recipe(text, name));
  } catch (const Error&) {  // whole with the overrides alone
    return false;
  }
}

void check_exists(std::string_view key, const std::string& value) {
  std::error_code error;
  std::filesystem::path path(value);
  if (!path.has_filename()) path = path.parent_path();  // "folder/" is found beside "folder"
  require(std::filesystem::exists(path, error), ErrorCode::io, "{}: no such file or folder ('{}'){}", value,
          key, nearest_file(path));
}

}  // namespace

Recipe parse_recipe(std::string_view text, std::string_view name, const std::vector<std::string>& overrides,
                    std::vector<std::string>* warnings) {
  std::vector<Assignment> written;
  size_t stages = 0;
  for (TomlEntry& entry : read_toml(text, name)) {
    stages = std::max(stages, entry.stage);
    written.push_back({entry.section, entry.key, std::move(entry.value),
                       fmt::format("{}:{}", name, entry.line), entry.is_table, entry.stage});
  }
  const RecipeTable& table = recipe_table(task_of(written, overrides));
  std::vector<Assignment> changed;
  for (const std::string& override_text : overrides) {
    changed.push_back(parse_override(table, override_text));
    require(changed.back().stage <= stages, ErrorCode::invalid_argument, "{}: the recipe has {} stages",
            changed.back().place, stages);
  }
  // What is changed is so in every stage, whatever was written there.
  const auto read = [&](size_t stage, Places& places) {
    Recipe recipe;
    const auto apply_all = [&](const std::vector<Assignment>& all, const std::set<size_t>& of) {
      for (const Assignment& one : all) {
        if (of.contains(one.stage)) apply(table, recipe, places, one);
      }
    };
    apply_all(written, {0});
    if (stage > 0) apply_all(written, {stage});
    apply_all(changed, {0, stage});
    fill_in(table, recipe, places);
    return recipe;
  };
  Places common;
  Recipe recipe = read(0, common);
  Places unused;
  if (stages == 0) {
    check_contradictions(recipe, common, name);
    unused = unused_keys(table, recipe, common);
  }
  for (size_t stage = 1; stage <= stages; ++stage) {
    Places places;
    const Recipe of_stage = read(stage, places);
    check_contradictions(of_stage, places, name);
    const Places unused_here = unused_keys(table, of_stage, places);
    if (stage == 1) unused = unused_here;
    // A key has an effect where it has one in some stage.
    std::erase_if(unused, [&](const auto& one) { return !unused_here.contains(one.first); });
    recipe.stages.push_back(of_stage.values);
  }
  if (warnings != nullptr) {
    for (const RecipeField& field : table.fields()) {
      if (const auto found = unused.find(field.path()); found != unused.end())
        warnings->push_back(found->second);
    }
  }
  return recipe;
}

Recipe Recipe::at_stage(int64_t index) const {
  return stages.empty() ? *this : Recipe{.values = stages.at(static_cast<size_t>(index))};
}

Recipe load_recipe(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  std::error_code error;
  require(std::filesystem::exists(path, error), ErrorCode::io, "{}: no such recipe{}", path.string(),
          nearest_file(path));
  const std::string text = read_text_file(path, kMaximumRecipeBytes);
  std::vector<std::string> warnings;
  Recipe recipe = parse_recipe(text, path.string(), overrides, &warnings);
  const bool is_ours = was_written_by_a_run(text, path.string());
  for (const std::string& warning : warnings) {
    if (!is_ours || warning.starts_with("--set ")) log_warning("{}", warning);
  }
  check_recipe_files(recipe);
  return recipe;
}

void check_recipe_files(const Recipe& recipe) {
  const RecipeTable& table = recipe_table(recipe.task());
  for (int64_t stage = 0; stage < recipe.stage_count(); ++stage) {
    const Recipe of_stage = recipe.at_stage(stage);
    for (const RecipeField& field : table.fields()) {
      if (!field.option->is_path || !table.has_effect(of_stage, field)) continue;
      const std::string& path = of_stage.values.text(field.path());
      if (!path.empty()) check_exists(field.path(), path);
    }
  }
}

}  // namespace tessera::recipe
