#include "tessera/data/tables.h"

#include <algorithm>

#include "tessera/base/elements.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/npz.h"
#include "tessera/data/parquet.h"
#include "tessera/data/registry.h"

#include "data/column_builder.h"

namespace tessera::data {
namespace {

template <typename T>
std::vector<std::string> numbers_as_texts(const Tensor& tensor, DataType type) {
  Tensor numbers(type, tensor.shape());
  cast_elements(tensor.data_type(), tensor.raw(), type, numbers.raw(), tensor.size(), false);
  std::vector<std::string> texts;
  for (const T number : numbers.data<T>()) texts.push_back(fmt::format("{}", number));
  return texts;
}

// The shortest that are read as the same numbers.
std::vector<std::string> texts_of(const Tensor& tensor) {
  const DataType type = tensor.data_type();
  if (type == DataType::fp64) return numbers_as_texts<double>(tensor, type);
  if (is_floating(type)) return numbers_as_texts<float>(tensor, DataType::fp32);
  if (type == DataType::uint64) return numbers_as_texts<uint64_t>(tensor, type);
  return numbers_as_texts<int64_t>(tensor, DataType::int64);
}

TextColumn column_of(const std::string& name, const Tensor& tensor) {
  ColumnBuilder column(name);
  for (const std::string& text : texts_of(tensor)) column.add(text);
  return std::move(column).column();
}

std::vector<TextColumn> read_npz_columns(const std::string& path, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  const Feeds arrays = read_npz(path, [&](const std::string& name) {
    known.push_back(name);
    return std::ranges::find(names, name) != names.end();
  });
  std::vector<TextColumn> columns;
  for (const std::string& name : names) {
    const auto found = arrays.find(name);
    require(found != arrays.end(), ErrorCode::invalid_argument, "{}: there is no array '{}'{}", path, name,
            did_you_mean(name, known));
    const Tensor& array = found->second;
    require(array.shape().size() == 1 && !is_complex(array.data_type()), ErrorCode::invalid_argument,
            "{}: '{}' is {}{}, expected real numbers of one axis", path, name, to_string(array.data_type()),
            to_string(array.shape()));
    columns.push_back(column_of(name, array));
    require(columns.back().codes.size() == columns.front().codes.size(), ErrorCode::invalid_file,
            "{}: '{}' has {} rows, '{}' has {}", path, columns.front().name, columns.front().codes.size(),
            name, columns.back().codes.size());
  }
  return columns;
}

constexpr const char* kPath = "The file; of `parquet` also a folder of them";

const TableRegistration kCsv({.name = "csv",
                              .documentation = "comma-separated values, whose first line names the columns",
                              .options = {path_option(kPath)},
                              .open =
                                  [](const Options& options, const std::vector<std::string>& columns) {
                                    return read_csv(options.text("path"), columns);
                                  },
                              .check = check_path});

const TableRegistration kNpz({.name = "npz",
                              .documentation = "arrays of one axis in a file of NumPy's, by their names",
                              .options = {path_option(kPath)},
                              .open =
                                  [](const Options& options, const std::vector<std::string>& columns) {
                                    return read_npz_columns(options.text("path"), columns);
                                  },
                              .check = check_path});

const TableRegistration kParquet({.name = "parquet",
                                  .documentation = "columns of a Parquet file, or of a folder of them",
                                  .options = {path_option(kPath)},
                                  .open =
                                      [](const Options& options, const std::vector<std::string>& columns) {
                                        return read_parquet(options.text("path"), columns);
                                      },
                                  .check = check_path});

}  // namespace

Registry<TableDescription>& tables() {
  static Registry<TableDescription> kinds("kind of tables");
  return kinds;
}

}  // namespace tessera::data
