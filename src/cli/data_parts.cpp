#include "cli/data_parts.h"

#include <system_error>

#include "tessera/base/error.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

DataPart open_part(const fs::path& folder, const std::string& name, data::Split split) {
  if (const data::AnnotatedSetDescription* kind = data::annotated_kind(folder)) {
    const auto samples = kind->open(folder, {.split = split, .test_share = 0}, {.leave_out_broken = true});
    return {name, samples, folder, samples};
  }
  const data::SplitFolder part = data::split_folder(folder, split);
  return {name, data::open_samples(folder, {.split = split, .test_share = 0}), part.path};
}

bool has_own_part(const fs::path& folder, data::Split split) {
  const data::AnnotatedSetDescription* kind = data::annotated_kind(folder);
  return kind != nullptr ? kind->has_part(folder, split) : data::has_part(folder, split);
}

}  // namespace

data::EncodedImage open_image(const DataPart& part, int64_t index, std::span<const std::byte> bytes) {
  if (part.annotated != nullptr) return part.annotated->open(index, bytes);
  return {bytes, part.samples->name(index)};
}

std::vector<DataPart> open_data_parts(const fs::path& folder) {
  std::error_code ignored;
  require(fs::is_directory(folder, ignored), ErrorCode::io, "{}: no such folder", folder.string());
  const bool has_training = has_own_part(folder, data::Split::train);
  const bool has_test = has_own_part(folder, data::Split::test);
  if (!has_training && !has_test) return {open_part(folder, "all", data::Split::train)};
  std::vector<DataPart> parts;
  if (has_training) parts.push_back(open_part(folder, "train", data::Split::train));
  if (has_test) parts.push_back(open_part(folder, "test", data::Split::test));
  return parts;
}

}  // namespace tessera::cli
