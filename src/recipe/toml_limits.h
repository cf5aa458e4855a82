// How deep a TOML document may nest. toml++ takes a table apart by recursion, one call for each part of a
// dotted key, and a key of half a million parts overflows the stack; so documents are looked at before it
// sees them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::recipe {

struct TomlExcess {
  size_t line;
  std::string what;
};

// The first place where a key has more than 16 parts, or brackets and braces are nested more than 16 deep:
// several times what any recipe needs. A text that is no TOML keeps to the same bounds up to its first fault,
// and the parser goes no further.
std::optional<TomlExcess> find_toml_excess(std::string_view text);

}  // namespace tessera::recipe
