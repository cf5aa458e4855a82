// Fields by name, and their limits in words.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/error.h"

#include "recipe/recipe_fields.h"

namespace tessera::recipe {

const RecipeField* find_field(std::string_view section, std::string_view key) {
  for (const RecipeField& field : recipe_fields()) {
    if (field.section == section && field.key == key) return &field;
  }
  return nullptr;
}

const RecipeField& section_selector(std::string_view section) {
  const auto& fields = recipe_fields();
  const auto first = std::find_if(fields.begin(), fields.end(),
                                  [&](const RecipeField& field) { return field.section == section; });
  require(first != fields.end(), ErrorCode::internal, "recipes have no section '{}'", section);
  return *first;
}

bool Limits::holds(double value) const {
  return std::isfinite(value) && (low_open ? value > low : value >= low) &&
         (high_open ? value < high : value <= high);
}

std::string Limits::describe() const {
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high && !low_open && !high_open)
    return fmt::format("from {:.15g} to {:.15g}", low, high);
  std::string text = has_low ? fmt::format("{} {:.15g}", low_open ? "above" : "at least", low) : "";
  if (has_high) {
    text += fmt::format("{}{} {:.15g}", text.empty() ? "" : " and ", high_open ? "below" : "at most", high);
  }
  return text;
}

}  // namespace tessera::recipe
