// The keys of recipes: the one place from which parsing, printing, checking and documentation come.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/recipe/recipe.h"

namespace tessera::recipe {

struct RecipeField {
  std::string section;   // "optimizer"
  const Option* option;  // where choices of the section have options of that key, that of the first
  // With which choices of the section's first field it has an effect; empty: with all.
  std::vector<std::string> used_by = {};
  // The options of those choices, where each has its own.
  std::vector<std::pair<std::string, const Option*>> by_choice = {};
  std::vector<std::string> choices = {};               // of a text; empty: any
  std::vector<std::string> choice_documentation = {};  // of each, where they have any

  const std::string& key() const { return option->key; }
  std::string path() const { return section + "." + option->key; }
  // What is there when nothing is given: as with `choice` of the section's first field. None without a value.
  std::optional<OptionValue> default_value(const std::string& choice) const;
  bool has_effect(const std::string& choice) const;
  // Whether it may be another in each stage of a run: data, rates and steps, but neither the network nor what
  // its optimizer keeps.
  bool is_by_stage() const;
};

class RecipeTable {
 public:
  explicit RecipeTable(const std::string& task);

  // In the order of printing; the fields of one section stand together.
  const std::vector<RecipeField>& fields() const { return fields_; }
  // Null when there is none.
  const RecipeField* find(std::string_view section, std::string_view key) const;
  bool has_section(std::string_view name) const;
  // The section's first field, "name" or "kind": its choice decides what the section's other fields mean.
  const RecipeField& selector(std::string_view section) const;
  // What the recipe chose by it; "" where the section has no such choices.
  std::string choice(const Recipe& recipe, const RecipeField& field) const;
  bool has_effect(const Recipe& recipe, const RecipeField& field) const {
    return field.has_effect(choice(recipe, field));
  }

 private:
  void add(const std::string& section, const std::vector<Option>& options);
  // Of the section's first field.
  void add_choices(const std::string& section, const std::vector<OptionChoice>& choices);

  std::vector<RecipeField> fields_;
};

// Of a task; where there is none of that name, of the default one.
const RecipeTable& recipe_table(const std::string& task);

// A TOML basic string: quoted, with quotes, backslashes and control characters escaped.
std::string quote_toml(std::string_view text);

// The value as TOML.
std::string to_toml(const OptionValue& value);

// Whether the text is what to_toml() makes of the recipe, and nothing is added: be it in the order of another
// version, and without the task that it had no name for.
bool is_spelled_out(std::string_view text, const Recipe& recipe);

}  // namespace tessera::recipe
