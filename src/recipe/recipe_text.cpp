// How recipes and their table of keys are printed.
#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/train/task_registry.h"

#include "recipe/recipe_table.h"
#include "recipe/recipe_toml.h"

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
std::string format_value(const std::vector<T>& values) {
  std::vector<std::string> items;
  for (const T& value : values) items.push_back(format_value(value));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// "`sgd`, `lars`"
std::string code_list(const std::vector<std::string>& names) {
  return fmt::format("`{}`", fmt::join(names, "`, `"));
}

// But for those that name the default task.
std::vector<std::string> sorted_lines(std::string_view text) {
  const std::string default_task = fmt::format("name = {}", quote_toml(train::default_task().name));
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line != "[task]" && line != default_task) lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string default_text(const std::optional<OptionValue>& value, const Option& option) {
  return value ? "`" + to_toml(*value) + "`" : option.unset;
}

// "`0.1`", or "`0.1` for `sgd`; `10.0` for `lars`" where it depends.
std::string default_text(const RecipeField& field) {
  std::vector<std::pair<std::string, std::vector<std::string>>> defaults;  // with the choices that have each
  for (const auto& [choice, option] : field.by_choice) {
    const std::string value = default_text(field.default_value(choice), *option);
    const auto known = std::find_if(defaults.begin(), defaults.end(),
                                    [&](const auto& entry) { return entry.first == value; });
    if (known == defaults.end()) {
      defaults.push_back({value, {choice}});
    } else {
      known->second.push_back(choice);
    }
  }
  if (defaults.size() < 2) return default_text(field.default_value(""), *field.option);
  std::vector<std::string> texts;
  for (const auto& [value, choices] : defaults) texts.push_back(value + " for " + code_list(choices));
  return fmt::format("{}", fmt::join(texts, "; "));
}

// "`sgd`, `lars`", or "`constant`: the same at every step; `cosine`: down half a wave".
std::string choices_text(const RecipeField& field) {
  if (field.choice_documentation.size() < field.choices.size()) return code_list(field.choices);
  std::vector<std::string> texts;
  for (size_t i = 0; i < field.choices.size(); ++i)
    texts.push_back(fmt::format("`{}`: {}", field.choices[i], field.choice_documentation[i]));
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string reference_row(const RecipeField& field) {
  const Option& option = *field.option;
  std::string meaning = option.documentation;
  if (!field.choices.empty() && meaning.find('`') == std::string::npos) meaning += ": " + choices_text(field);
  if (!field.used_by.empty()) meaning += ". For " + code_list(field.used_by);
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", field.path(), type_name(option.value),
                     default_text(field), option.limits.describe(), meaning);
}

std::string reference_table(const std::vector<const RecipeField*>& fields) {
  std::string text = "| key | type | default | limits | meaning |\n|---|---|---|---|---|\n";
  for (const RecipeField* field : fields) text += reference_row(*field);
  return text;
}

bool is_of_task(const train::TaskDescription& task, const RecipeField& field) {
  const auto holds = [&](const std::vector<Option>& options) {
    return std::any_of(options.begin(), options.end(),
                       [&](const Option& option) { return &option == field.option; });
  };
  return std::any_of(task.sections.begin(), task.sections.end(), [&](const train::OptionSection& section) {
    if (holds(section.options)) return true;
    const auto choices = section.choices ? section.choices() : std::vector<OptionChoice>{};
    return std::any_of(choices.begin(), choices.end(),
                       [&](const OptionChoice& choice) { return holds(*choice.options); });
  });
}

// What the stage has otherwise. A list that it empties is none.
std::string stage_toml(const Recipe& recipe, const Options& stage) {
  std::string text = fmt::format("\n[[{}]]\n", kStages);
  for (const RecipeField& field : recipe_table(recipe.task()).fields()) {
    const OptionValue* value = stage.find(field.path());
    const OptionValue* common = recipe.values.find(field.path());
    if (value == nullptr && common != nullptr) text += fmt::format("{} = []\n", field.path());
    if (value != nullptr && (common == nullptr || *value != *common))
      text += fmt::format("{} = {}\n", field.path(), to_toml(*value));
  }
  return text;
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

std::string to_toml(const OptionValue& value) {
  return std::visit([](const auto& held) { return format_value(held); }, value);
}

std::string to_toml(const Recipe& recipe) {
  std::string text;
  std::string_view section;
  for (const RecipeField& field : recipe_table(recipe.task()).fields()) {
    if (field.section != section) text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", field.section);
    section = field.section;
    const OptionValue* value = recipe.values.find(field.path());
    text += value != nullptr ? fmt::format("{} = {}\n", field.key(), to_toml(*value))
                             : fmt::format("# {}: {}\n", field.key(), field.option->unset);
  }
  for (const Options& stage : recipe.stages) text += stage_toml(recipe, stage);
  return text;
}

bool is_spelled_out(std::string_view text, const Recipe& recipe) {
  return sorted_lines(text) == sorted_lines(to_toml(recipe));
}

std::string recipe_reference() {
  std::vector<const RecipeField*> common;
  const train::TaskDescription& any = train::default_task();
  for (const RecipeField& field : recipe_table(any.name).fields()) {
    if (!is_of_task(any, field)) common.push_back(&field);
  }
  std::string text = "### Of every recipe\n\n" + reference_table(common);
  for (const train::TaskDescription* task : train::tasks().all()) {
    std::vector<const RecipeField*> own;
    for (const RecipeField& field : recipe_table(task->name).fields()) {
      if (is_of_task(*task, field)) own.push_back(&field);
    }
    text += fmt::format("\n### Of `{}`\n\n{}\n\n{}", task->name, task->documentation, reference_table(own));
  }
  return text;
}

}  // namespace tessera::recipe
