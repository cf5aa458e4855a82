// The table of recipe keys: the one place from which parsing, printing, checking and documentation come.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/recipe/recipe.h"

namespace tessera::recipe {

// Where a key's value lies in a Recipe; the alternative is the key's type.
using Slot =
    std::variant<bool*, int64_t*, double*, std::string*, std::optional<bool>*, std::optional<int64_t>*,
                 std::optional<double>*, std::vector<int64_t>*, std::vector<double>*>;

struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;  // whether `low` itself is outside
  bool high_open = false;

  bool holds(double value) const;  // false for NaN and infinities
  std::string describe() const;    // "at least 0 and below 1"; "" without limits
};

// What a key may do when a run is resumed.
enum class Resuming {
  asked,  // differ when the user asked for it: it decides what is computed
  free,   // differ: the steps to come compute the same
  fixed,  // not differ: what a position in the data means depends on it
};

struct RecipeField {
  std::string_view section;  // "optimizer"
  std::string_view key;      // "learning_rate"
  Slot (*slot)(Recipe&);
  std::string_view documentation;
  Limits limits = {};                          // of a number, or of each in a list
  std::vector<std::string> choices = {};       // of a string; empty: any
  std::vector<std::string> used_by = {};       // the section's names that read this key; empty: all
  std::string_view unset = "the model's own";  // meaning of an optional or empty value
  Resuming resuming = Resuming::asked;

  std::string path() const { return std::string(section) + "." + std::string(key); }
};

// In the order of printing; the fields of one section stand together.
const std::vector<RecipeField>& recipe_fields();

// The field of that name, or nullptr.
const RecipeField* find_field(std::string_view section, std::string_view key);

// The section's first field, "name" or "kind": its choice decides what the section's other fields mean.
const RecipeField& section_selector(std::string_view section);

// A TOML basic string: quoted, with quotes, backslashes and control characters escaped.
std::string quote_toml(std::string_view text);

// The value as TOML, or nullopt for an optional without value and an empty list.
std::optional<std::string> field_value(const RecipeField& field, const Recipe& recipe);

// "a whole number", "a list of numbers", ...
std::string_view type_name(const Slot& slot);

}  // namespace tessera::recipe
