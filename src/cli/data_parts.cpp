#include "cli/data_parts.h"

#include <system_error>

#include "tessera/base/error.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

DataPart open_part(const fs::path& folder, const std::string& name, data::Split split) {
  const data::SplitFolder part = data::split_folder(folder, split);
  return {name, data::open_samples(folder, {.split = split, .test_share = 0}), part.path};
}

}  // namespace

std::vector<DataPart> open_data_parts(const fs::path& folder) {
  std::error_code ignored;
  require(fs::is_directory(folder, ignored), ErrorCode::io, "{}: no such folder", folder.string());
  const bool has_training = data::has_part(folder, data::Split::train);
  const bool has_test = data::has_part(folder, data::Split::test);
  if (!has_training && !has_test) return {open_part(folder, "all", data::Split::train)};
  std::vector<DataPart> parts;
  if (has_training) parts.push_back(open_part(folder, "train", data::Split::train));
  if (has_test) parts.push_back(open_part(folder, "test", data::Split::test));
  return parts;
}

}  // namespace tessera::cli
