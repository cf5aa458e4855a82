#include "tessera/recipe/recipe.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/base/text.h"

#include "recipe/recipe_defaults.h"
#include "recipe/recipe_fields.h"
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

bool is_section(std::string_view name) {
  const auto& fields = recipe_fields();
  return std::any_of(fields.begin(), fields.end(),
                     [&](const RecipeField& field) { return field.section == name; });
}

// ", did you mean 'x'?" for a key that is none: the same key of another section, else the nearest of its own
// section, else the nearest full name.
std::string suggestion(const Assignment& unknown) {
  std::vector<std::string> siblings;
  std::vector<std::string> paths;
  std::vector<std::string> sections;
  for (const RecipeField& field : recipe_fields()) {
    if (field.key == unknown.key) return did_you_mean(field.path(), {field.path()});
    if (field.section == unknown.section) siblings.emplace_back(field.key);
    paths.push_back(field.path());
    if (sections.empty() || sections.back() != field.section) sections.emplace_back(field.section);
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

class Assigner {
 public:
  Assigner(Recipe& recipe, const RecipeField& field, const Assignment& assignment)
      : recipe_(recipe), field_(field), assignment_(assignment) {}

  void assign() {
    const Slot slot = field_.slot(recipe_);
    std::visit([&](auto* target) { set(target, slot); }, slot);
  }

 private:
  template <typename T>
  void set(T* target, const Slot& slot) {
    *target = checked<T>(assignment_.value, slot);
  }
  template <typename T>
  void set(std::optional<T>* target, const Slot& slot) {
    *target = checked<T>(assignment_.value, slot);
  }
  template <typename T>
  void set(std::vector<T>* target, const Slot& slot) {
    const auto* items = std::get_if<std::vector<TomlValue>>(&assignment_.value.value);
    if (items == nullptr) wrong_type(assignment_.value, slot);
    target->clear();
    for (const TomlValue& item : *items) target->push_back(checked<T>(item, slot));
  }

  template <typename T>
  T checked(const TomlValue& value, const Slot& slot) {
    const std::optional<T> converted = value_as<T>(value);
    if (!converted) wrong_type(value, slot);
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>) {
      require(field_.limits.holds(static_cast<double>(*converted)), ErrorCode::invalid_argument,
              "{}: '{}' must be {}, not {}", assignment_.place, field_.path(),
              field_.limits.describe().empty() ? "finite" : field_.limits.describe(), *converted);
    }
    if constexpr (std::is_same_v<T, std::string>) check_choice(*converted);
    return *converted;
  }

  void check_choice(const std::string& value) {
    const auto& choices = field_.choices;
    if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    fail(ErrorCode::invalid_argument, "{}: '{}' has no choice {}{} (choices: {})", assignment_.place,
         field_.path(), quote_toml(value), did_you_mean(value, choices), fmt::join(choices, ", "));
  }

  [[noreturn]] void wrong_type(const TomlValue& value, const Slot& slot) {
    const bool in_list = &value != &assignment_.value;
    fail(ErrorCode::invalid_argument, "{}: '{}' must be {}, not {}{}", assignment_.place, field_.path(),
         type_name(slot), in_list ? "one with " : "", describe(value));
  }

  Recipe& recipe_;
  const RecipeField& field_;
  const Assignment& assignment_;
};

void apply(Recipe& recipe, Places& places, const Assignment& assignment) {
  if (assignment.section.empty() && is_section(assignment.key)) {
    require(assignment.is_table, ErrorCode::invalid_argument, "{}: '{}' must be a table, written [{}]",
            assignment.place, assignment.key, assignment.key);
    return;
  }
  const RecipeField* field = find_field(assignment.section, assignment.key);
  if (field == nullptr) {
    const bool is_unknown_table = assignment.section.empty() && assignment.is_table;
    fail(ErrorCode::invalid_argument, "{}: unknown {} '{}'{}", assignment.place,
         is_unknown_table ? "table" : "key", full_name(assignment), suggestion(assignment));
  }
  Assigner(recipe, *field, assignment).assign();
  places[field->path()] = assignment.place;
}

Assignment parse_override(const std::string& text) {
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

  const RecipeField* field = find_field(result.section, result.key);
  Recipe scratch;
  const bool wants_text = field != nullptr && std::holds_alternative<std::string*>(field->slot(scratch));
  const bool is_value = read_toml_value(value, result.value);
  // For a key that takes text, 2024 and true are text as well.
  if (is_value && (!wants_text || std::holds_alternative<std::string>(result.value.value))) return result;
  require(read_toml_value(quote_toml(value), result.value), ErrorCode::invalid_argument,
          "{}: the value is not UTF-8", result.place);
  return result;
}

bool is_device_name(std::string_view name) {
  if (name == "auto" || name == "cpu" || name == "cuda" || name == "reference") return true;
  if (!name.starts_with("cuda:") || name.size() > 8) return false;
  const std::string_view number = name.substr(5);
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

// Rules that one key alone cannot break. Throws at the place of the last key given.
class Contradictions {
 public:
  Contradictions(const Recipe& recipe, const Places& places, std::string_view name)
      : recipe_(recipe), places_(places), name_(name) {}

  void check() const {
    const auto& [model, data, train, optimizer, schedule] = recipe_;
    hold(!model.name.empty(), {"model.name"}, "'model.name' is empty");
    hold(*model.classes >= data.classes, {"model.classes", "data.classes"},
         fmt::format("the network has {} outputs ('model.classes') for {} classes ('data.classes')",
                     *model.classes, data.classes));
    hold(data.kind != "idx" || !data.path.empty(), {"data.kind", "data.path"},
         "'data.path', the folder of the data, is missing (as an option: --set data.path=FOLDER)");
    for (const auto& [key, list] : {std::pair{"data.mean", &data.mean}, std::pair{"data.std", &data.std}}) {
      hold(static_cast<int64_t>(list->size()) == data.channels, {key, "data.channels"},
           fmt::format("'{}' has {} values for {} channels ('data.channels')", key, list->size(),
                       data.channels));
    }
    hold(data.cutout <= data.image_size, {"data.cutout", "data.image_size"},
         fmt::format("'data.cutout' ({}) is larger than the image ({})", data.cutout, data.image_size));
    hold(is_device_name(train.device), {"train.device"},
         fmt::format("'train.device' is {}; devices are auto, cpu, cuda, cuda:N and reference{}",
                     quote_toml(train.device),
                     did_you_mean(train.device, {"auto", "cpu", "cuda", "reference"})));
    hold(!optimizer.nesterov || optimizer.momentum > 0, {"optimizer.momentum", "optimizer.nesterov"},
         "'optimizer.nesterov' needs a 'optimizer.momentum' above 0");
    check_schedule(schedule);
  }

 private:
  void check_schedule(const Recipe::Schedule& schedule) const {
    hold(schedule.warmup_epochs == 0 || schedule.warmup_steps == 0,
         {"schedule.warmup_epochs", "schedule.warmup_steps"},
         "only one of 'schedule.warmup_epochs' and 'schedule.warmup_steps' may be above 0");
    hold(schedule.name != "step" || !schedule.milestones.empty(), {"schedule.name", "schedule.milestones"},
         "the step schedule needs 'schedule.milestones', such as [30, 60, 80]");
    hold(std::is_sorted(schedule.milestones.begin(), schedule.milestones.end(), std::less_equal<>()) ||
             schedule.milestones.size() < 2,
         {"schedule.milestones"}, "'schedule.milestones' must rise");
  }

  void hold(bool rule, std::initializer_list<const char*> keys, const std::string& message) const {
    if (rule) return;
    std::string place(name_);
    for (const char* key : keys) {
      if (const auto found = places_.find(key); found != places_.end()) place = found->second;
    }
    fail(ErrorCode::invalid_argument, "{}: {}", place, message);
  }

  const Recipe& recipe_;
  const Places& places_;
  std::string_view name_;
};

void note_unused_keys(Recipe& recipe, const Places& places, std::vector<std::string>& warnings) {
  for (const RecipeField& field : recipe_fields()) {
    const auto given = places.find(field.path());
    if (field.used_by.empty() || given == places.end()) continue;
    const RecipeField& selector = section_selector(field.section);
    const std::string& chosen = *std::get<std::string*>(selector.slot(recipe));
    if (std::find(field.used_by.begin(), field.used_by.end(), chosen) != field.used_by.end()) continue;
    warnings.push_back(fmt::format("{}: '{}' has no effect with {} = {}", given->second, field.path(),
                                   selector.path(), quote_toml(chosen)));
  }
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
bool is_spelled_out(const std::string& text, const std::string& name) {
  try {
    return to_toml(parse_recipe(text, name)) == text;
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
  Recipe recipe;
  Places places;
  for (TomlEntry& entry : read_toml(text, name)) {
    apply(recipe, places,
          {entry.section, entry.key, std::move(entry.value), fmt::format("{}:{}", name, entry.line),
           entry.is_table});
  }
  for (const std::string& override_text : overrides) apply(recipe, places, parse_override(override_text));
  fill_in(recipe, [&](std::string_view path) { return places.contains(path); });
  Contradictions(recipe, places, name).check();
  if (warnings != nullptr) note_unused_keys(recipe, places, *warnings);
  return recipe;
}

Recipe load_recipe(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  std::error_code error;
  require(std::filesystem::exists(path, error), ErrorCode::io, "{}: no such recipe{}", path.string(),
          nearest_file(path));
  const std::string text = read_text_file(path, kMaximumRecipeBytes);
  std::vector<std::string> warnings;
  Recipe recipe = parse_recipe(text, path.string(), overrides, &warnings);
  const bool is_ours = is_spelled_out(text, path.string());
  for (const std::string& warning : warnings) {
    if (!is_ours || warning.starts_with("--set ")) log_warning("{}", warning);
  }
  check_recipe_files(recipe);
  return recipe;
}

void check_recipe_files(const Recipe& recipe) {
  if (recipe.data.kind == "idx") check_exists("data.path", recipe.data.path);
  if (!recipe.model.weights.empty()) check_exists("model.weights", recipe.model.weights);
}

}  // namespace tessera::recipe
