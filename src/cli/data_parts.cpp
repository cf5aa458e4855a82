#include "cli/data_parts.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>

#include "tessera/base/error.h"
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
            .samples = data::open_sound_folder(folder, {.split = split, .test_share = 0}),
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

data::EncodedImage open_image(const DataPart& part, int64_t index, std::span<const std::byte> bytes) {
  if (part.annotated != nullptr) return part.annotated->open(index, bytes);
  return {bytes, part.samples->name(index)};
}

std::map<int64_t, std::string> visit_samples(const DataPart& part,
                                             const std::function<void(int64_t index)>& look_at) {
  std::map<int64_t, std::string> broken;
  std::exception_ptr failure;
  std::mutex mutex;  // guards both
  std::atomic<int64_t> next{0};
  const auto look_or_note = [&](int64_t index) {
    try {
      look_at(index);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_file && error.code() != ErrorCode::io) throw;
      const std::lock_guard lock(mutex);
      broken.emplace(index, error.what());
    }
  };
  const auto work = [&] {
    try {
      for (int64_t i = next++; i < part.samples->size() && !stop_flag().load(); i = next++) look_or_note(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
    for (unsigned i = 0; i < count; ++i) threads.emplace_back(work);
  }
  if (failure != nullptr) std::rethrow_exception(failure);
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
