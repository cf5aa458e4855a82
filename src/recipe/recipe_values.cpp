#include "recipe/recipe_values.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera::recipe {
namespace {

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

}  // namespace

std::string full_name(const Assignment& assignment) {
  return assignment.section.empty() ? assignment.key : assignment.section + "." + assignment.key;
}

OptionValue read_value(const RecipeField& field, const Assignment& assignment) {
  return Reader(field, assignment).read();
}

}  // namespace tessera::recipe
