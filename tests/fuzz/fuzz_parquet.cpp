// Any bytes either are refused with an Error or give columns that all have a code for each row. What decodes
// them is not ours and tells nothing of what it reaches: mutations start from the kept seeds alone.
#include <cstdlib>
#include <span>

#include "tessera/base/error.h"
#include "tessera/data/parquet.h"

#include "fuzz.h"

namespace {

// Every kind of column in the seeds.
const std::vector<std::vector<std::string>> kColumns = {{"a", "b"}, {"c"}, {"d"}, {"e"}, {"f"}};

void read(std::span<const std::byte> bytes, const std::vector<std::string>& names) {
  std::vector<tessera::data::TextColumn> columns;
  try {
    columns = tessera::data::parse_parquet(bytes, names, "input", int64_t{1} << 28);
  } catch (const tessera::Error&) {
    return;
  }
  if (columns.size() != names.size()) std::abort();
  for (const tessera::data::TextColumn& column : columns) {
    if (column.codes.size() != columns[0].codes.size()) std::abort();
    if (column.numbers().size() != column.codes.size()) std::abort();
    for (const int32_t code : column.codes) {
      if (code < 0 || static_cast<size_t>(code) >= column.values.size()) std::abort();
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const std::vector<std::string>& names : kColumns) read(std::as_bytes(std::span(data, size)), names);
  return 0;
}
