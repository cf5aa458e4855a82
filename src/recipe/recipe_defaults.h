// Values that a recipe leaves out and that depend on its other values.
#pragma once

#include <functional>
#include <string_view>

#include "tessera/recipe/recipe.h"

namespace tessera::recipe {

// Fills in what is_given("optimizer.momentum") and the like deny.
void fill_in(Recipe& recipe, const std::function<bool(std::string_view path)>& is_given);

}  // namespace tessera::recipe
