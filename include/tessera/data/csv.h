// Tables of text, a row a line: comma-separated values as RFC 4180 has them, or values between tabs, which
// no quotes stand around.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::data {

// A column of which few different texts are expected: each is kept once.
struct TextColumn {
  std::string name;
  std::vector<std::string> values;  // in the order in which they first stand
  std::vector<int32_t> codes;       // [rows], places in `values`

  // The numbers that the texts are; NaN for what is none, such as "NA".
  std::vector<double> numbers() const;
};

// The named columns of a file whose first line names them, in the order asked for. Throws Error(io) when it
// cannot be read, Error(invalid_argument) naming the column that it lacks, with the nearest, and
// Error(invalid_file) with the number of the row that has too few or too many cells. `separator`: a comma or
// a tab.
std::vector<TextColumn> read_csv(const std::filesystem::path& path, const std::vector<std::string>& columns,
                                 char separator = ',');
// The same of text in memory, which messages call `name`.
std::vector<TextColumn> parse_csv(std::string_view text, const std::vector<std::string>& columns,
                                  std::string_view name, char separator = ',');

}  // namespace tessera::data
