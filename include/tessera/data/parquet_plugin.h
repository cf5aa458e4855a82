// What a plug-in that reads Parquet files exports.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::data {

struct ParquetColumn {
  std::string name;
  std::string type;          // as messages call it: "int32", "list<element: double>"
  bool is_readable = false;  // cell by cell: no column in columns, no bytes
  bool is_text = false;
};

// A file that is open, for one thread at a time. Whatever is wrong with it throws Error(invalid_file) or,
// where it is compressed as this build cannot read, Error(unsupported), both with its name.
class ParquetFile {
 public:
  ParquetFile() = default;
  ParquetFile(const ParquetFile&) = delete;
  ParquetFile& operator=(const ParquetFile&) = delete;
  virtual ~ParquetFile() = default;

  virtual const std::vector<ParquetColumn>& columns() const = 0;
  // Rows are in groups, each by itself compressed.
  virtual int64_t groups() const = 0;
  // What the file says that a readable column has in a group when it is not compressed.
  virtual int64_t bytes(int64_t group, size_t column) const = 0;

  using CellVisitor = std::function<void(std::string_view cell)>;
  // Visits the cells of a readable column in a group, each as a text: a number in the shortest form that is
  // read as the same, 1 and 0 for true and false, dates and times by ISO 8601, nothing for null.
  // Some thousand cells are in memory at once. Throws Error(out_of_memory) where more than what
  // the file was opened with is needed, and what the visitor throws.
  virtual void visit(int64_t group, size_t column, const CellVisitor& visitor) = 0;
};

struct ParquetRequest {
  std::string name;                 // for messages
  std::filesystem::path path = {};  // empty: it is in memory
  std::span<const std::byte> bytes = {};
  int64_t most_bytes = 0;  // of memory for what is being read
};

// The library libtessera_parquet.so, where plug-ins are looked for (tessera/compile/plugin.h), exports one of
// these, with C linkage, as tessera_parquet. It is loaded when the first Parquet file is opened: what it
// links is several times as large as the library.
struct ParquetPlugin {
  const char* interface_version;  // TESSERA_INTERFACE_VERSION of tessera/interface_version.h
  // Throws Error(io) where there is no such file, and as ParquetFile does.
  std::unique_ptr<ParquetFile> (*create)(const ParquetRequest& request);
};
inline constexpr const char* kParquetEntry = "tessera_parquet";

}  // namespace tessera::data
