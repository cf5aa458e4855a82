// Tables in Parquet files, by a plug-in that is loaded when the first of them is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/csv.h"

namespace tessera::data {

// Memory that decoding a file may take at once; pages of honest files have a megabyte.
inline constexpr int64_t kParquetMemory = int64_t{1} << 32;

// The named columns in the order asked for, of a file or of the files NAME.parquet in a folder, by their
// names one after another. Cells are texts as a table of comma-separated values would have them: numbers and
// decimals in the shortest form that is read as the same, 1 and 0 for true and false, dates and times by ISO
// 8601, nothing for null. Row groups are read one at a time, some thousand rows at once. Throws Error(io)
// when there is nothing to read; Error(invalid_argument) naming the column that is missing, with the nearest,
// or that holds no single cells, such as lists; Error(invalid_file) when a file is truncated or corrupt;
// Error(out_of_memory) when kParquetMemory does not suffice; and Error(unsupported) when this build has no
// reader of Parquet, or not of the file's compression.
std::vector<TextColumn> read_parquet(const std::filesystem::path& path,
                                     const std::vector<std::string>& columns);
// The same of a file in memory, which messages call `name`.
std::vector<TextColumn> parse_parquet(std::span<const std::byte> bytes,
                                      const std::vector<std::string>& columns, const std::string& name,
                                      int64_t most_bytes = kParquetMemory);

// The file itself, or the files NAME.parquet in a folder. Throws Error(io) where it holds none.
std::vector<std::filesystem::path> parquet_files(const std::filesystem::path& path);

}  // namespace tessera::data
