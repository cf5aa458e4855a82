#include "tessera/data/parquet.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/compile/plugin.h"

#include "data/column_builder.h"
#include "data/parquet_columns.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "parquet";

std::unique_ptr<ParquetFile> open(const ParquetRequest& request) {
  std::error_code ignored;
  require(fs::exists(plugin_path(kName), ignored), ErrorCode::unsupported,
          "{}: this build has no reader of Parquet; fetch what it needs (tools/setup extra) and build again",
          request.name);
  const auto& plugin = load_plugin<ParquetPlugin>(
      {.asker = request.name, .name = kName, .kind = "reader of Parquet files", .entry = kParquetEntry});
  return plugin.create(request);
}

// Appends the cells of a file, whose columns are all equally long.
void append(ParquetFile& file, const std::string& name, std::vector<ColumnBuilder>& builders) {
  std::vector<size_t> places;
  for (const ColumnBuilder& builder : builders)
    places.push_back(find_column(file, builder.so_far().name, name));
  for (int64_t group = 0; group < file.groups(); ++group) {
    for (size_t i = 0; i < places.size(); ++i)
      file.visit(group, places[i], [&](std::string_view cell) { builders[i].add(cell); });
    for (const ColumnBuilder& builder : builders) {
      const TextColumn& column = builder.so_far();
      const TextColumn& first = builders.front().so_far();
      require(column.codes.size() == first.codes.size(), ErrorCode::invalid_file,
              "{}: '{}' and '{}' have different numbers of rows in row group {}", name, first.name,
              column.name, group);
    }
  }
}

std::vector<ColumnBuilder> builders_of(const std::vector<std::string>& columns, const std::string& name) {
  for (auto column = columns.begin(); column != columns.end(); ++column) {
    require(std::find(columns.begin(), column, *column) == column, ErrorCode::invalid_argument,
            "{}: the column '{}' is asked for twice", name, *column);
  }
  return {columns.begin(), columns.end()};
}

}  // namespace

std::unique_ptr<ParquetFile> open_parquet(const fs::path& path) {
  return open({.name = path.string(), .path = path, .most_bytes = kParquetMemory});
}

size_t find_column(const ParquetFile& file, const std::string& column, const std::string& name) {
  const std::vector<ParquetColumn>& columns = file.columns();
  const auto found = std::ranges::find(columns, column, &ParquetColumn::name);
  if (found == columns.end()) {
    std::vector<std::string> known;
    for (const ParquetColumn& other : columns) known.push_back(other.name);
    fail(ErrorCode::invalid_argument, "{}: there is no column '{}'{}", name, column,
         did_you_mean(column, known));
  }
  require(found->is_readable, ErrorCode::invalid_argument,
          "{}: the column '{}' is {}, expected numbers, true and false, texts, or dates", name, column,
          found->type);
  return static_cast<size_t>(found - columns.begin());
}

std::vector<fs::path> parquet_files(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".parquet") files.push_back(entry->path());
  }
  require(!error, ErrorCode::io, "{}: {}", path.string(), error.message());
  require(!files.empty(), ErrorCode::io, "{}: the folder holds no .parquet files", path.string());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<TextColumn> read_parquet(const fs::path& path, const std::vector<std::string>& columns) {
  std::vector<ColumnBuilder> builders = builders_of(columns, path.string());
  for (const fs::path& file : parquet_files(path)) append(*open_parquet(file), file.string(), builders);
  return columns_of(std::move(builders));
}

std::vector<TextColumn> parse_parquet(std::span<const std::byte> bytes,
                                      const std::vector<std::string>& columns, const std::string& name,
                                      int64_t most_bytes) {
  std::vector<ColumnBuilder> builders = builders_of(columns, name);
  append(*open({.name = name, .bytes = bytes, .most_bytes = most_bytes}), name, builders);
  return columns_of(std::move(builders));
}

}  // namespace tessera::data
