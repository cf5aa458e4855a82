#include "cli/data_parts.h"

#include <algorithm>
#include <system_error>

#include "tessera/base/error.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

bool holds_shards(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  return !error && std::ranges::any_of(entries, [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".tar";
  });
}

DataPart open_part(const fs::path& folder, const std::string& name, data::Split split) {
  const data::SplitFolder part = data::split_folder(folder, split);
  const auto open = holds_shards(part.path) ? data::open_tar_shards : data::open_image_folder;
  return {name, open(folder, {.split = split, .test_share = 0}), part.path};
}

}  // namespace

std::vector<DataPart> open_data_parts(const fs::path& folder) {
  std::error_code ignored;
  require(fs::is_directory(folder, ignored), ErrorCode::io, "{}: no such folder", folder.string());
  const bool has_training = fs::is_directory(folder / "train", ignored);
  const bool has_test = std::ranges::any_of(std::vector{"val", "validation", "test"}, [&](const char* name) {
    return fs::is_directory(folder / name, ignored);
  });
  if (!has_training && !has_test) return {open_part(folder, "all", data::Split::train)};
  std::vector<DataPart> parts;
  if (has_training) parts.push_back(open_part(folder, "train", data::Split::train));
  if (has_test) parts.push_back(open_part(folder, "test", data::Split::test));
  return parts;
}

}  // namespace tessera::cli
