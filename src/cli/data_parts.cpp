#include "cli/data_parts.h"

#include <mutex>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/parallel.h"
#include "tessera/data/sounds.h"

#include "cli/data_commands.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

DataPart open_part(const fs::path& folder, const std::string& name, data::Split split) {
  if (const data::AnnotatedSetDescription* kind = data::annotated_kind(folder)) {
    const auto samples = kind->open(folder, {.split = split, .test_share = 0}, {.leave_out_broken = true});
    return {name, samples, folder, samples};
  }
  const data::SplitFolder part = data::split_folder(folder, split);
  if (data::holds_sounds(folder)) {
    return {.name = name,
            .samples = data::open_sounds(folder, {.split = split, .test_share = 0}),
            .folder = part.path,
            .sounds = true};
  }
  return {name, data::open_samples(folder, {.split = split, .test_share = 0}), part.path};
}

bool has_own_part(const fs::path& folder, data::Split split) {
  const data::AnnotatedSetDescription* kind = data::annotated_kind(folder);
  return kind != nullptr ? kind->has_part(folder, split) : data::has_part(folder, split);
}

}  // namespace

std::string DataPart::class_of(int64_t index) const {
  const int32_t label = samples->label(index);
  return label < 0 ? "" : samples->class_names()[static_cast<size_t>(label)];
}

data::EncodedImage open_image(const DataPart& part, int64_t index, std::span<const std::byte> bytes) {
  if (part.annotated != nullptr) return part.annotated->open(index, bytes);
  return {bytes, part.samples->name(index)};
}

std::map<int64_t, std::string> visit_samples(const DataPart& part,
                                             const std::function<void(int64_t index)>& look_at) {
  std::map<int64_t, std::string> broken;
  std::mutex mutex;  // guards it
  const auto look_or_note = [&](int64_t index) {
    try {
      look_at(index);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_file && error.code() != ErrorCode::io) throw;
      const std::lock_guard lock(mutex);
      broken.emplace(index, error.what());
    }
  };
  for_each_in_parallel(part.samples->size(), look_or_note, &stop_flag());
  if (stop_flag().load()) throw Interrupted{};
  return broken;
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
