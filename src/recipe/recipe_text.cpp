// How recipes and their table of keys are printed.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "recipe/recipe_defaults.h"
#include "recipe/recipe_fields.h"

namespace tessera::recipe {
namespace {

std::string format_number(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string format_value(bool value) {
  return value ? "true" : "false";
}
std::string format_value(int64_t value) {
  return fmt::format("{}", value);
}
std::string format_value(double value) {
  return format_number(value);
}
std::string format_value(const std::string& value) {
  return quote_toml(value);
}
template <typename T>
std::optional<std::string> format_value(const std::optional<T>& value) {
  return value ? std::optional<std::string>(format_value(*value)) : std::nullopt;
}
template <typename T>
std::optional<std::string> format_value(const std::vector<T>& values) {
  if (values.empty()) return std::nullopt;
  std::vector<std::string> items;
  for (const T& value : values) items.push_back(format_value(value));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// "`sgd`, `lars`"
std::string code_list(const std::vector<std::string>& names) {
  return fmt::format("`{}`", fmt::join(names, "`, `"));
}

// The values that a key of [optimizer] has with each optimizer when it is left out: (value, optimizers).
std::vector<std::pair<std::string, std::vector<std::string>>> optimizer_defaults(const RecipeField& field) {
  std::vector<std::pair<std::string, std::vector<std::string>>> result;
  for (const std::string& name :
       field.used_by.empty() ? section_selector("optimizer").choices : field.used_by) {
    Recipe recipe;
    recipe.optimizer.name = name;
    fill_in(recipe, [](std::string_view) { return false; });
    const std::string value = field_value(field, recipe).value_or("");
    const auto known =
        std::find_if(result.begin(), result.end(), [&](const auto& entry) { return entry.first == value; });
    if (known == result.end()) {
      result.push_back({value, {name}});
    } else {
      known->second.push_back(name);
    }
  }
  return result;
}

// "`0.1`", or "`0.1` for `sgd`; `10.0` for `lars`" where it depends.
std::string default_text(const RecipeField& field) {
  std::string value = field_value(field, Recipe{}).value_or("");
  if (field.section == "optimizer" && field.key != "name") {
    std::vector<std::string> texts;
    for (const auto& [own, names] : optimizer_defaults(field)) {
      texts.push_back(fmt::format("`{}` for {}", own, code_list(names)));
      value = own;
    }
    if (texts.size() > 1) return fmt::format("{}", fmt::join(texts, "; "));
  }
  return value.empty() ? std::string(field.unset) : "`" + value + "`";
}

std::string reference_row(const RecipeField& field) {
  Recipe scratch;
  std::string meaning(field.documentation);
  if (!field.choices.empty() && meaning.find('`') == std::string::npos)
    meaning += ": " + code_list(field.choices);
  if (!field.used_by.empty()) meaning += ". For " + code_list(field.used_by);
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", field.path(), type_name(field.slot(scratch)),
                     default_text(field), field.limits.describe(), meaning);
}

}  // namespace

std::string quote_toml(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\u{:04X}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::optional<std::string> field_value(const RecipeField& field, const Recipe& recipe) {
  Recipe copy = recipe;  // a Slot points to mutable members
  return std::visit([](const auto* value) { return std::optional<std::string>(format_value(*value)); },
                    field.slot(copy));
}

std::string_view type_name(const Slot& slot) {
  constexpr std::string_view kNames[] = {"true or false", "a whole number",          "a number",
                                         "text",          "true or false",           "a whole number",
                                         "a number",      "a list of whole numbers", "a list of numbers"};
  static_assert(std::size(kNames) == std::variant_size_v<Slot>);
  return kNames[slot.index()];
}

std::string to_toml(const Recipe& recipe) {
  std::string text;
  std::string_view section;
  for (const RecipeField& field : recipe_fields()) {
    if (field.section != section) text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", field.section);
    section = field.section;
    const std::optional<std::string> value = field_value(field, recipe);
    text += value ? fmt::format("{} = {}\n", field.key, *value)
                  : fmt::format("# {}: {}\n", field.key, field.unset);
  }
  return text;
}

std::string recipe_reference() {
  std::string text = "| key | type | default | limits | meaning |\n|---|---|---|---|---|\n";
  for (const RecipeField& field : recipe_fields()) text += reference_row(field);
  return text;
}

}  // namespace tessera::recipe
