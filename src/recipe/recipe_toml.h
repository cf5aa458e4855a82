// What a TOML document holds, without toml++: its header costs seconds of compile time, so one file includes
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera::recipe {

enum class TomlOther { table, nested_list, time };  // what no key takes

struct TomlValue {
  std::variant<TomlOther, bool, int64_t, double, std::string, std::vector<TomlValue>> value;
};

struct TomlEntry {
  std::string section;  // "" for keys outside every table
  std::string key;      // "" for a table that stands where a value could: [optimizer.momentum] gives
                        // ("optimizer", "momentum") with is_table
  TomlValue value;
  bool is_table = false;
  uint32_t line = 0;
  size_t stage =
      0;  // of the keys of the table [[stages]] of that number, 1 for the first; 0: of no such table
};

// The tables that hold what stages of a run have otherwise: each is an entry ("", "stages") of its stage, and
// so are its keys, by section and key.
inline constexpr const char* kStages = "stages";

// All keys, table by table, in the order of the lines. Throws Error(invalid_argument) "NAME:LINE: what".
std::vector<TomlEntry> read_toml(std::string_view text, std::string_view name);

// One TOML value; false when the text is none.
bool read_toml_value(std::string_view text, TomlValue& value);

}  // namespace tessera::recipe
