// Any text either is refused with an Error or gives columns that all have a code for each row.
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/data/csv.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<tessera::data::TextColumn> columns;
  try {
    columns = tessera::data::parse_csv(text, {"a", "b"}, "input");
  } catch (const tessera::Error&) {
    return 0;
  }
  if (columns.size() != 2 || columns[0].codes.size() != columns[1].codes.size()) std::abort();
  for (const tessera::data::TextColumn& column : columns) {
    if (column.numbers().size() != column.codes.size()) std::abort();
    for (const int32_t code : column.codes) {
      if (code < 0 || static_cast<size_t>(code) >= column.values.size()) std::abort();
    }
  }
  return 0;
}
