#include "tessera/recipe/recipe.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/base/text.h"
#include "tessera/compile/device.h"
#include "tessera/optim/registry.h"
#include "tessera/train/task_registry.h"

#include "recipe/recipe_table.h"
#include "recipe/recipe_toml.h"

namespace tessera::recipe {
namespace {

constexpr uint64_t kMaximumRecipeBytes = 1 << 20;

// Where each key was last given: "recipe.toml:12" or "--set optimizer.momentum=2".
using Places = std::map<std::string, std::string, std::less<>>;

struct Assignment {
  std::string section;
  std::string key;
  TomlValue value;
  std::string place;
  bool is_table = false;
};

std::string full_name(const Assignment& assignment) {
  return assignment.section.empty() ? assignment.key : assignment.section + "." + assignment.key;
}

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

// What the user wrote, for messages.
std::string describe(const TomlValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) return held ? "true" : "false";
        if constexpr (std::is_same_v<Held, int64_t> || std::is_same_v<Held, double>)
          return fmt::format("{}", held);
        if constexpr (std::is_same_v<Held, std::string>) return quote_toml(held);
        if constexpr (std::is_same_v<Held, std::vector<TomlValue>>) return "a list";
        if constexpr (std::is_same_v<Held, TomlOther>) {
          return held == TomlOther::table ? "a table" : held == TomlOther::time ? "a date or time" : "a list";
        }
      },
      value.value);
}

// The value as T, whole numbers being welcome where any number is.
template <typename T>
std::optional<T> value_as(const TomlValue& value) {
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* whole = std::get_if<int64_t>(&value.value)) return static_cast<double>(*whole);
  }
  const T* exact = std::get_if<T>(&value.value);
  return exact != nullptr ? std::optional<T>(*exact) : std::nullopt;
}

// Turns what was written into a value of the option's type, within its limits.
class Reader {
 public:
  Reader(const RecipeField& field, const Assignment& assignment)
      : field_(field), option_(*field.option), assignment_(assignment) {}

  OptionValue read() const {
    const OptionValue& kind = option_.value;
    if (std::holds_alternative<bool>(kind)) return checked<bool>(assignment_.value);
    if (std::holds_alternative<int64_t>(kind)) return checked<int64_t>(assignment_.value);
    if (std::holds_alternative<double>(kind)) return checked<double>(assignment_.value);
    if (std::holds_alternative<std::string>(kind)) return checked<std::string>(assignment_.value);
    if (std::holds_alternative<std::vector<int64_t>>(kind)) return list<int64_t>();
    if (std::holds_alternative<std::vector<std::string>>(kind)) return list<std::string>();
    return list<double>();
  }

 private:
  template <typename T>
  OptionValue list() const {
    const auto* items = std::get_if<std::vector<TomlValue>>(&assignment_.value.value);
    if (items == nullptr) wrong_type(assignment_.value);
    std::vector<T> values;
    for (const TomlValue& item : *items) values.push_back(checked<T>(item));
    return values;
  }

  template <typename T>
  T checked(const TomlValue& value) const {
    const std::optional<T> converted = value_as<T>(value);
    if (!converted) wrong_type(value);
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>) {
      const std::string limits = option_.limits.describe();
      require(option_.limits.holds(static_cast<double>(*converted)), ErrorCode::invalid_argument,
              "{}: '{}' must be {}, not {}", assignment_.place, field_.path(),
              limits.empty() ? "finite" : limits, *converted);
    }
    if constexpr (std::is_same_v<T, std::string>) check_choice(*converted);
    return *converted;
  }

  void check_choice(const std::string& value) const {
    const auto& choices = field_.choices;
    if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    fail(ErrorCode::invalid_argument, "{}: '{}' has no choice {}{} (choices: {})", assignment_.place,
         field_.path(), quote_toml(value), did_you_mean(value, choices), fmt::join(choices, ", "));
  }

  [[noreturn]] void wrong_type(const TomlValue& value) const {
    const bool in_list = &value != &assignment_.value;
    fail(ErrorCode::invalid_argument, "{}: '{}' must be {}, not {}{}", assignment_.place, field_.path(),
         type_name(option_.value), in_list ? "one with " : "", describe(value));
  }

  const RecipeField& field_;
  const Option& option_;
  const Assignment& assignment_;
};

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
  OptionValue value = Reader(*field, assignment).read();
  places[field->path()] = assignment.place;
  if (is_empty_list(value) && !field->option->unset.empty()) {
    recipe.values.erase(field->path());
  } else {
    recipe.values.set(field->path(), std::move(value));
  }
}

Assignment parse_override(const RecipeTable& table, const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const size_t dot = name.find('.');
  Assignment result;
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

// Throws at the place of the last key given.
void check_contradictions(const Recipe& recipe, const Places& places, std::string_view name) {
  for (const Contradiction& one : contradictions(recipe)) {
    std::string place(name);
    for (const std::string& key : one.keys) {
      if (const auto found = places.find(key); found != places.end()) place = found->second;
    }
    fail(ErrorCode::invalid_argument, "{}: {}", place, one.message);
  }
}

void note_unused_keys(const RecipeTable& table, const Recipe& recipe, const Places& places,
                      std::vector<std::string>& warnings) {
  for (const RecipeField& field : table.fields()) {
    const auto given = places.find(field.path());
    if (given == places.end() || table.has_effect(recipe, field)) continue;
    warnings.push_back(fmt::format("{}: '{}' has no effect with {} = {}", given->second, field.path(),
                                   table.selector(field.section).path(),
                                   quote_toml(table.choice(recipe, field))));
  }
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
  std::vector<Assignment> assignments;
  for (TomlEntry& entry : read_toml(text, name)) {
    assignments.push_back({entry.section, entry.key, std::move(entry.value),
                           fmt::format("{}:{}", name, entry.line), entry.is_table});
  }
  const RecipeTable& table = recipe_table(task_of(assignments, overrides));
  for (const std::string& override_text : overrides)
    assignments.push_back(parse_override(table, override_text));
  Recipe recipe;
  Places places;
  for (const Assignment& assignment : assignments) apply(table, recipe, places, assignment);
  fill_in(table, recipe, places);
  check_contradictions(recipe, places, name);
  if (warnings != nullptr) note_unused_keys(table, recipe, places, *warnings);
  return recipe;
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
  for (const RecipeField& field : table.fields()) {
    if (!field.option->is_path || !table.has_effect(recipe, field)) continue;
    const std::string& path = recipe.values.text(field.path());
    if (!path.empty()) check_exists(field.path(), path);
  }
}

}  // namespace tessera::recipe
