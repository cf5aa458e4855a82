// What was written of a key, and the value that it is.
#pragma once

#include <string>

#include "recipe/recipe_table.h"
#include "recipe/recipe_toml.h"

namespace tessera::recipe {

struct Assignment {
  std::string section;
  std::string key;
  TomlValue value;
  std::string place;  // "recipe.toml:12" or "--set optimizer.momentum=2"
  bool is_table = false;
  size_t stage = 0;  // TomlEntry::stage
};

// "optimizer.momentum".
std::string full_name(const Assignment& assignment);

// Of the field's type and within its limits. Throws Error(invalid_argument) that names place, key and limits.
OptionValue read_value(const RecipeField& field, const Assignment& assignment);

}  // namespace tessera::recipe
