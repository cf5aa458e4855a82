// Columns of Parquet files by their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "tessera/data/parquet_plugin.h"

namespace tessera::data {

// Throws as read_parquet() does.
std::unique_ptr<ParquetFile> open_parquet(const std::filesystem::path& path);

// The place of a column that is readable. Throws as read_parquet() does.
size_t find_column(const ParquetFile& file, const std::string& column, const std::string& name);

}  // namespace tessera::data
