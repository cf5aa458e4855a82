// Any text either is refused with an Error or is a recipe whose printed form reads back as itself. What
// follows a NUL is an override.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/recipe/recipe.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  std::vector<std::string> overrides;
  if (end != std::string_view::npos) overrides.emplace_back(input.substr(end + 1));
  tessera::recipe::Recipe recipe;
  try {
    std::vector<std::string> warnings;
    recipe = tessera::recipe::parse_recipe(input.substr(0, end), "input", overrides, &warnings);
  } catch (const tessera::Error&) {
    return 0;
  }
  const std::string printed = tessera::recipe::to_toml(recipe);
  if (!(tessera::recipe::parse_recipe(printed, "printed") == recipe)) {
    std::fprintf(stderr, "does not read back:\n%s", printed.c_str());
    std::abort();
  }
  return 0;
}
